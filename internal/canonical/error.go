package canonical

import (
	"fmt"
	"unicode/utf8"
)

// Kind says for what reason a document was refused.
type Kind string

// The kinds of refusal. Each has at least one golden vector.
const (
	Syntax        Kind = "syntax"
	InvalidUTF8   Kind = "invalid_utf8"
	LoneSurrogate Kind = "lone_surrogate"
	DuplicateName Kind = "duplicate_name"
	NumberRange   Kind = "number_range"
	TooDeep       Kind = "too_deep"
	TooLarge      Kind = "too_large"
	WrongType     Kind = "wrong_type" // Marshal was given a Go type that it does not accept
)

// Error is the refusal of a document.
//
// Its text may be shown and logged: it holds the path of the value, which is made
// of member names and indexes, and never a value of the document.
type Error struct {
	Path string // JSON pointer (RFC 6901) to the value; cut with "…" after pathLimit bytes
	Kind Kind
	Msg  string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return fmt.Sprintf("%s at %q", e.Msg, e.Path)
}

// pathLimit keeps a hostile member name from becoming a hostile error message.
const pathLimit = 256

func newError(path string, kind Kind, msg string) *Error {
	return (&Error{Kind: kind, Msg: msg}).within(path)
}

// within puts the path of the enclosing value in front.
func (e *Error) within(parent string) *Error {
	e.Path = parent + e.Path
	if len(e.Path) > pathLimit {
		cut := pathLimit
		for cut > 0 && !utf8.RuneStart(e.Path[cut]) {
			cut--
		}
		e.Path = e.Path[:cut] + "…"
	}
	return e
}
