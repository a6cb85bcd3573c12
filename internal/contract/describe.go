package contract

import (
	"fmt"
	"strings"
)

// describe computes the words about the action.
func (c *Contract) describe(args map[string]any, r *Resolved) (err error) {
	variables := map[string]any{"args": args}
	if r.Resource, err = words(c.resource, "resource", variables, func(s string) string { return s }); err != nil {
		return err
	}
	r.Impact, err = words(c.impact, "impact", variables, printable)
	return err
}

func words(t *text, name string, variables map[string]any, show func(string) string) (string, error) {
	if t == nil {
		return "", nil
	}
	s, err := t.string(variables, show)
	switch {
	case err != nil:
		return "", invalid("the %s of the action %s", name, err)
	case len(s) > maxWords:
		return "", invalid("the arguments make the %s of the action longer than %d bytes", name, maxWords)
	}
	return s, nil
}

// printable spells out what could hide or forge a part of a text that a person reads before approving.
func printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
