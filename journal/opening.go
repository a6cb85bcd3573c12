package journal

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Format is the name of the profile, which record 0 states.
const Format = "deed-journal-json/1"

// openedEvent is what record 0 is called. It is the only event that this package
// knows, because it binds every later record to one journal.
const openedEvent = "journal.opened"

var (
	errOrigin        = errors.New("an origin is not empty and has no spaces, line breaks or plus signs")
	errAlreadyOpened = errors.New("the journal has been opened before")
	errNotOpened     = errors.New("the first record of a journal is the one that Open makes")
)

// Open prepares record 0, with the origin and the format added to fields.
func (c *Chain) Open(fields map[string]any) (Record, error) {
	if c.pending.next != 0 {
		return Record{}, errAlreadyOpened
	}
	opening := []member{{"event", openedEvent}, {"origin", c.origin}, {"format", Format}}
	for _, m := range opening {
		if _, taken := fields[m.name]; taken {
			return Record{}, &ProfileError{Rule: RuleOpening, Member: m.name}
		}
	}
	return c.append(fields, opening)
}

// openingOrigin returns the origin that record 0 states. The body has passed the
// profile, so no member stands there twice.
func openingOrigin(body []byte) (origin string, ok bool) {
	var opening struct {
		Event  string `json:"event"`
		Origin string `json:"origin"`
		Format string `json:"format"`
	}
	if err := json.Unmarshal(body, &opening); err != nil {
		return "", false
	}
	return opening.Origin, opening.Event == openedEvent && opening.Format == Format && isOrigin(opening.Origin)
}

// isOrigin repeats what C2SP checkpoints ask of their first line and of key names.
func isOrigin(origin string) bool {
	return origin != "" && utf8.ValidString(origin) && !strings.ContainsRune(origin, '+') &&
		!strings.ContainsFunc(origin, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}
