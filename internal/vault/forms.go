package vault

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// formsOf lists the texts that give a secret away: itself, in hex and in base64. A basic credential is looked for as a
// whole as well. Percent, JSON and HTML escapes are no forms: they can be written in many ways, so answers are decoded
// before they are searched.
func formsOf(values ...string) []string {
	var forms []string
	for _, v := range values {
		lower := hex.EncodeToString([]byte(v))
		forms = append(forms, v, lower, strings.ToUpper(lower))
		for shift := range 3 {
			std, ok := base64Core(v, shift)
			if ok {
				forms = append(forms, std, urlAlphabet.Replace(std))
			}
		}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

var urlAlphabet = strings.NewReplacer("+", "-", "/", "_")

// base64Core is the part of a base64 text that v alone decides, when v stands at an offset of shift bytes modulo 3 in what
// was encoded. Characters that also hold bits of the neighbours are left out, so padding never matters.
func base64Core(v string, shift int) (string, bool) {
	padded := make([]byte, shift, shift+len(v))
	padded = append(padded, v...)
	text := base64.RawStdEncoding.EncodeToString(padded)
	first := (shift*8 + 5) / 6
	last := len(padded) * 8 / 6
	return text[first:last], last-first >= MinSecret
}

func base64Char(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("+/-_=", c) >= 0
}
