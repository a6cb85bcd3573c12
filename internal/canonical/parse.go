package canonical

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep arrays and objects may be nested. A scalar has depth 0.
const MaxDepth = 64

// Parse reads exactly one JSON document. Objects become map[string]any, arrays
// []any, numbers Number; null becomes nil, which is not the same as absent.
// The error is an *Error.
func Parse(data []byte) (any, error) {
	return ParseMax(data, math.MaxInt)
}

// ParseMax is Parse for callers with a limit: a document of more than maxBytes is
// refused unread, with the kind TooLarge.
func ParseMax(data []byte, maxBytes int) (any, error) {
	if len(data) > maxBytes {
		return nil, newError("", TooLarge, fmt.Sprintf("document of more than %d bytes", maxBytes))
	}
	p := parsers.Get().(*parser)
	defer p.release()
	p.open(data)
	value, err := p.document()
	if err != nil {
		return nil, err
	}
	return value, nil
}

// parser keeps a decoder, because making one costs more than reading a small
// document with it.
type parser struct {
	text    string // the document; strings and numbers of the tree are parts of it
	read    int    // bytes of text before the end of the last token
	source  *bytes.Buffer
	decoder *jsontext.Decoder
}

var parsers = sync.Pool{New: func() any {
	source := new(bytes.Buffer)
	return &parser{source: source, decoder: jsontext.NewDecoder(source)}
}}

func (p *parser) open(data []byte) {
	p.text, p.read = string(data), 0
	*p.source = *bytes.NewBuffer(data)
	p.decoder.Reset(p.source)
}

// release drops the caller's bytes before the parser goes back to the pool.
func (p *parser) release() {
	p.open(nil)
	parsers.Put(p)
}

// next reads a token, with its text as it stands in the document.
func (p *parser) next() (token jsontext.Token, text string, err error) {
	token, err = p.decoder.ReadToken()
	if err != nil {
		return token, "", err
	}
	start, end := p.read, int(p.decoder.InputOffset())
	for start < end && separates[p.text[start]] {
		start++
	}
	p.read = end
	return token, p.text[start:end], nil
}

// separates marks what the decoder skips between two tokens.
var separates = [256]bool{' ': true, '\t': true, '\r': true, '\n': true, ',': true, ':': true}

// unquote returns the string that a token means. Most have no escapes, and then
// nothing is copied.
func unquote(token jsontext.Token, text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text[1 : len(text)-1]
	}
	return token.String()
}

func (p *parser) document() (any, *Error) {
	token, text, err := p.next()
	if err != nil {
		return nil, p.refuse(err)
	}
	value, refusal := p.value(token, text, 0)
	if refusal != nil {
		return nil, refusal
	}
	if _, _, err := p.next(); err == nil {
		return nil, newError("", Syntax, "more than one JSON value")
	} else if !errors.Is(err, io.EOF) {
		return nil, p.refuse(err)
	}
	return value, nil
}

func (p *parser) value(token jsontext.Token, text string, depth int) (any, *Error) {
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't':
		return true, nil
	case 'f':
		return false, nil
	case '"':
		return unquote(token, text), nil
	case '0':
		text, refusal := canonicalNumber(text)
		if refusal != "" {
			return nil, newError(p.path(), NumberRange, refusal)
		}
		return Number(text), nil
	}
	if depth == MaxDepth {
		return nil, newError(p.path(), TooDeep, fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	if token.Kind() == '{' {
		return p.object(depth + 1)
	}
	return p.array(depth + 1)
}

func (p *parser) object(depth int) (any, *Error) {
	members := map[string]any{}
	for {
		token, text, err := p.next()
		if err != nil {
			return nil, p.refuse(err)
		}
		if token.Kind() == '}' {
			return members, nil
		}
		name := unquote(token, text)
		if token, text, err = p.next(); err != nil {
			return nil, p.refuse(err)
		}
		value, refusal := p.value(token, text, depth)
		if refusal != nil {
			return nil, refusal
		}
		members[name] = value
	}
}

func (p *parser) array(depth int) (any, *Error) {
	elements := []any{}
	for {
		token, text, err := p.next()
		if err != nil {
			return nil, p.refuse(err)
		}
		if token.Kind() == ']' {
			return elements, nil
		}
		value, refusal := p.value(token, text, depth)
		if refusal != nil {
			return nil, refusal
		}
		elements = append(elements, value)
	}
}

func (p *parser) path() string { return string(p.decoder.StackPointer()) }

// refuse turns a decoder error into ours. The decoder's own text quotes the input,
// so nothing of it is kept but the place.
func (p *parser) refuse(err error) *Error {
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return newError("", Syntax, "no JSON value")
	}
	path, offset := string(syntactic.JSONPointer), syntactic.ByteOffset
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return newError(path, DuplicateName, "duplicate member name")
	}
	rest := p.text[min(offset, int64(len(p.text))):]
	if r, n := utf8.DecodeRuneInString(rest); r == utf8.RuneError && n == 1 {
		return newError(path, InvalidUTF8, fmt.Sprintf("invalid UTF-8 after byte %d", offset))
	}
	if startsWithSurrogate(rest) {
		return newError(path, LoneSurrogate, fmt.Sprintf("lone surrogate after byte %d", offset))
	}
	return newError(path, Syntax, fmt.Sprintf("invalid JSON after byte %d", offset))
}

// startsWithSurrogate says whether text begins with an escape from \ud800 to \udfff.
func startsWithSurrogate(text string) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' && text[2]|0x20 == 'd' &&
		strings.IndexByte("89abcdefABCDEF", text[3]) >= 0
}
