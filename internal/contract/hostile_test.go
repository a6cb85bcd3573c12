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
