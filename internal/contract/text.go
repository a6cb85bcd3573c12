package contract

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
)

// text is a string of a contract: literal parts and ${…} expressions in turn.
type text struct {
	path  string // where it stands in the contract
	parts []part
}

type part struct {
	literal string
	expr    *expression
}

// whole is the expression that makes up all of the text, or nil. Such a text keeps the type of its value.
func (t *text) whole() *expression {
	if len(t.parts) == 1 {
		return t.parts[0].expr
	}
	return nil
}

// expressions lists the expressions of the text.
func (t *text) expressions() []*expression {
	var list []*expression
	for _, p := range t.parts {
		if p.expr != nil {
			list = append(list, p.expr)
		}
	}
	return list
}

// text compiles a string of the contract and records what is wrong with it.
func (f *faults) text(path, source string, in scope) *text {
	t := &text{path: path}
	pieces, err := split(source)
	if err != nil {
		f.add(path, err.Error(), "close it with }, or write $${ for the two characters")
		return t
	}
	for _, p := range pieces {
		if !p.expression {
			t.parts = append(t.parts, part{literal: p.text})
			continue
		}
		expr, issues := compile(p.text, in)
		for _, i := range issues {
			f.addAt(f.places.of(path).inside(source, p.offset, i), path, i.msg, "")
		}
		if expr != nil {
			t.parts = append(t.parts, part{expr: expr})
		}
	}
	return t
}

// condition compiles a text that has to be one expression with a truth value.
func (f *faults) condition(path, source string, in scope) *expression {
	if source == "" {
		return nil
	}
	t := f.text(path, source, in)
	expr := t.whole()
	switch {
	case f.any(path):
		return nil
	case expr == nil:
		f.add(path, "this is not one expression", "write ${…} around all of it, for example ${status == 200}")
	case !expr.isBool():
		f.add(path, fmt.Sprintf("the expression gives %s and no truth value", cel.FormatCELType(expr.kind)),
			"compare it, for example ${status == 200}")
	}
	return expr
}

// value evaluates the text. A whole expression keeps its type; anything else becomes a string.
func (t *text) value(variables map[string]any) (value any, present bool, err error) {
	if expr := t.whole(); expr != nil {
		result, err := expr.eval(variables)
		if err != nil {
			return nil, false, err
		}
		return tree(result)
	}
	s, err := t.string(variables, func(s string) string { return s })
	return s, true, err
}

// string evaluates the text to a string. show is applied to what expressions give, and not to the contract's own words.
func (t *text) string(variables map[string]any, show func(string) string) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		if p.expr == nil {
			b.WriteString(p.literal)
			continue
		}
		result, err := p.expr.eval(variables)
		if err != nil {
			return "", err
		}
		value, present, err := tree(result)
		if err != nil {
			return "", err
		}
		if !present {
			return "", errors.New("gives nothing, which has no place in text")
		}
		s, err := scalarText(value)
		if err != nil {
			return "", err
		}
		b.WriteString(show(s))
	}
	return b.String(), nil
}

// inside moves a place to an issue of the expression that begins at the offset of the source.
func (at place) inside(source string, offset int, i issue) place {
	before := source[:offset]
	switch {
	case at.style == block:
		at.line += 1 + strings.Count(before, "\n") + i.line - 1
		at.column = 1
	case i.line == 1 && !strings.Contains(before, "\n"):
		at.column += utf8.RuneCountInString(before) + i.column
		if at.style == quoted {
			at.column++
		}
	}
	return at
}
