package contract

import (
	"fmt"
	"strings"

	"deed.dev/deed/internal/action"
)

// Where says where the effect of a tool happens.
type Where string

// Places of an effect.
const (
	Nowhere     Where = "nowhere"
	OwnDatabase Where = "own_database"
	Elsewhere   Where = "elsewhere"
)

// Facts are the answers that decide how much guarding a tool needs.
type Facts struct {
	Where        Where
	KeyHonoured  bool // the target keeps a key and returns the first result for it
	Found        bool // the target can be asked what became of an action
	Irreversible bool
	Long         bool // several steps, long, or with waits
	Compensates  bool // it undoes another action
}

// Need is how much guarding a tool needs, and why.
type Need struct {
	Levels   []int // guard levels, the outer one first; none for a read
	Approval bool  // a person decides about the exact call beforehand
	Why      string
}

func (n Need) String() string {
	levels := make([]string, len(n.Levels))
	for i, l := range n.Levels {
		levels[i] = fmt.Sprintf("L%d", l)
	}
	s := strings.Join(levels, " with ")
	if s == "" {
		s = "no level"
	}
	if n.Approval {
		s += " and an approval of each action"
	}
	return s + ": " + n.Why
}

// Decide answers which guard level a tool needs, from where its effect happens.
func Decide(f Facts) Need {
	n := decide(f)
	if f.Compensates {
		n.Why += " A compensation is an action like any other and answers the same questions."
	}
	return n
}

func decide(f Facts) Need {
	switch {
	case f.Where == Nowhere:
		return Need{Why: "it has no effect. Read again freely, and record the attempts."}
	case f.Where == OwnDatabase:
		return Need{Levels: []int{4}, Why: "its effect and its record are committed together, so there is no gap to guard."}
	case f.KeyHonoured && !f.Irreversible && f.Long:
		return Need{Levels: []int{3, 2}, Why: "it is long or has several steps, and each step sends a key that the target honours."}
	case f.KeyHonoured && !f.Irreversible:
		return Need{Levels: []int{2}, Why: "its effect is elsewhere, and the target honours the key of the action."}
	case f.Found && !f.Irreversible:
		return Need{Levels: []int{5}, Why: "the target takes no key, and can be asked: an unknown outcome is looked up."}
	default:
		return Need{Levels: []int{5}, Approval: true,
			Why: "the target takes no key and cannot be asked, or the effect cannot be undone: an unknown outcome waits for a person."}
	}
}

// Level says which guard level the tool needs, as far as its contract tells. What the contract claims about its target is
// believed here.
func Level(c *Contract) Need {
	f := Facts{Where: Elsewhere, KeyHonoured: c.Class == action.RepeatableWithKey, Found: c.Lookup != nil, Long: c.Poll != nil}
	if !c.HasEffects {
		f.Where = Nowhere
	}
	return Decide(f)
}
