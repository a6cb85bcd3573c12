package contract_test

import (
	"strings"
	"testing"

	"deed.dev/deed/internal/contract"
)

func TestHostileFilesAreRefused(t *testing.T) {
	nested := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"brackets":    strings.Repeat("[", 200_000),
		"braces":      strings.Repeat("{a: ", 50_000),
		"entries":     strings.Repeat("- ", 100_000),
		"questions":   strings.Repeat("? ", 100_000),
		"json":        strings.Repeat(`{"a":[`, 30_000),
		"indentation": nested(600),
		"too large":   "a: " + strings.Repeat("x", 1<<20),
		"aliases":     "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n",
		"documents":   strings.Repeat("---\n- x\n", 2000),
		"names":       strings.Repeat("x", 100000) + ": 1\n",
		"open quote":  "a: \"" + strings.Repeat("\n\n", 10000),
		"colons":      strings.Repeat(": ", 100000),
		"anchors":     strings.Repeat("&a ", 100000),
		"tags":        strings.Repeat("!!a ", 100000),
		"not UTF-8":   "a: \xff\n",
		"controls":    "a: \x00\x01\n",
		"expression":  with(t, pay, "${status == 201}", "${"+strings.Repeat("(", 3000)+"1"+strings.Repeat(")", 3000)+" == 1}"),
		"large text":  with(t, pay, "${status == 201}", "${status == 1"+strings.Repeat(" + 1", 2000)+"}"),
	} {
		list, err := contract.Parse("x.yaml", []byte(text))
		if err == nil || len(list) != 0 {
			t.Errorf("%s: got %d contracts, %v", name, len(list), err)
		}
		if err != nil && len(err.Error()) > 1<<20 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// costly is a tool whose input takes a list, each element of which has to be validated.
const costly = `tool: store
description: An effect.
input:
  type: object
  required: [items]
  properties:
    items: ITEMS
http:
  method: POST
  url: https://api.example.com/v1/objects
  json: {items: "${args.items}"}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m}
done_when: ${status == 201}
keep_result: 30d
`

// One call of 1 MiB made hundreds of thousands of mistakes: it took minutes and gigabytes to put all of them into words, or
// to compare each element with each other. A call with so many values is refused before anything is validated, and what is
// said about fewer has a bound.
func TestManyMistakesAreRefusedCheaply(t *testing.T) {
	const (
		simple = `{type: array, items: {type: object, required: [sku, count], properties: {sku: {type: string}, count: {type: integer}}}}`
		unique = `{type: array, uniqueItems: true, items: {anyOf: [
      {type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}},
      {type: object, required: [c, d], properties: {c: {type: string}, d: {type: string}}}]}}`
	)
	fill := func(unit string, bytes int) string {
		return `{"items":[` + strings.TrimSuffix(strings.Repeat(unit+",", (bytes-32)/(len(unit)+1)), ",") + `]}`
	}
	for name, c := range map[string]struct {
		items, args string
		says        string
		allocations float64
	}{
		"1 MiB of empty objects":        {simple, fill(`{}`, 1<<20), "more than 20000 values", 1e6},
		"1 MiB of equal objects":        {unique, fill(`{"a":"","b":""}`, 1<<20), "more than 20000 values", 1e6},
		"1 MiB of numbers":              {simple, fill(`1`, 1<<20), "more than 20000 values", 1e6},
		"as many as are taken, invalid": {simple, fill(`{}`, 3*19_000), "and ", 5e5},
		"as many as are taken, equal":   {unique, fill(`{"a":"","b":""}`, 16*6_000), "/items", 5e5},
	} {
		tool, text := load(t, strings.Replace(costly, "ITEMS", c.items, 1)), ""
		allocations := testing.AllocsPerRun(1, func() { text = refused(t, tool, c.args) })
		if !strings.Contains(text, c.says) || len(text) > 10<<10 {
			t.Errorf("%s: the refusal has %d bytes and begins %.100q, want few with %q", name, len(text), text, c.says)
		}
		if allocations > c.allocations {
			t.Errorf("%s: %.0f allocations, want at most %.0f", name, allocations, c.allocations)
		}
	}
}
