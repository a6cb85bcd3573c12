package journal

import (
	"fmt"
	"strings"
)

// Limits of the profile.
const (
	MaxBody    = 65_535    // bytes, the limit of C2SP tlog-tiles
	MaxDepth   = 16        // objects and arrays inside each other; the body is the first
	MaxInteger = 1<<53 - 1 // what every JSON reader keeps exactly
)

// Version is the value of the member v.
const Version = 1

// Rule names a rule of the profile.
type Rule string

// The rules of the profile, each with vectors of what it accepts and refuses.
const (
	RuleSyntax   Rule = "syntax"   // one JSON object and nothing after it
	RuleEncoding Rule = "encoding" // valid UTF-8, no byte order mark
	RuleSpace    Rule = "space"    // no white space between tokens
	RuleName     Rule = "name"     // [a-z][a-z0-9_]*
	RuleOrder    Rule = "order"    // names strictly ascend
	RuleReserved Rule = "reserved" // prev, seq and v only at the top level
	RuleLink     Rule = "link"     // prev, seq and v are there and well formed
	RuleOpening  Rule = "opening"  // record 0 is journal.opened and states format and origin
	RuleEscape   Rule = "escape"   // the escapes of RFC 8785 and no others
	RuleNumber   Rule = "number"   // integers within ±MaxInteger, one spelling
	RuleNull     Rule = "null"     // null does not exist
	RuleTime     Rule = "time"     // the form of FormatTime
	RuleDepth    Rule = "depth"    // at most MaxDepth
	RuleSize     Rule = "size"     // at most MaxBody
	RuleType     Rule = "type"     // Encode was given a Go type that it does not accept
)

// ProfileError says which rule a body breaks, and where. It never repeats a value.
type ProfileError struct {
	Rule   Rule
	Offset int    // in bytes, when bytes were checked
	Member string // path of names and indexes, when a value was encoded
}

func (e *ProfileError) Error() string {
	if e.Member != "" {
		return fmt.Sprintf("profile rule %q broken by member %q", e.Rule, e.Member)
	}
	return fmt.Sprintf("profile rule %q broken at byte %d", e.Rule, e.Offset)
}

func isReserved[text string | []byte](name text) bool {
	switch string(name) {
	case "prev", "seq", "v":
		return true
	}
	return false
}

// holdsTime says whether a member of that name must be a time.
func holdsTime(name string) bool {
	return name == "time" || strings.HasSuffix(name, "_at")
}

// isName says whether name matches [a-z][a-z0-9_]*.
func isName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}
