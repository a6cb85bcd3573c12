package vault

import (
	"bytes"
	"slices"
	"strings"
)

// span is a part of a text, from its first byte to the one after its last.
type span struct{ from, to int }

// Redact replaces every form of the secret in text by [secret] and reports whether there was one. It finds the secret
// itself, its hex and its base64 (both alphabets, with or without padding, also inside a longer base64 text), each of them
// plain, percent-encoded, JSON-escaped, HTML-escaped or broken over lines, and two of these over each other. A form that
// the target invents itself cannot be found.
func (o *Opened) Redact(text []byte) (out []byte, found bool) {
	spans := findForms(text, o.forms())
	return replaceSpans(text, spans), len(spans) > 0
}

// RedactCut is Redact for a text that broke off: an end that may be the beginning of the secret is replaced too.
func (o *Opened) RedactCut(text []byte) (out []byte, found bool) {
	forms := o.forms()
	spans := append(findForms(text, forms), partialEnds(text, forms)...)
	return replaceSpans(text, spans), len(spans) > 0
}

// RedactString is Redact for a string.
func (o *Opened) RedactString(text string) (out string, found bool) {
	b, found := o.Redact([]byte(text))
	if !found {
		return text, false
	}
	return string(b), true
}

// findForms searches the text in each view of it.
func findForms(text []byte, forms []string) []span {
	var spans []span
	for _, v := range views(text) {
		if inView := matches(v.text, forms); len(inView) > 0 {
			at := v.origins(text)
			for _, m := range inView {
				spans = append(spans, span{at[m.from].from, at[m.to-1].to})
			}
		}
	}
	return spans
}

// matches finds every form in a text.
func matches(text []byte, forms []string) []span {
	var spans []span
	for _, form := range forms {
		for at := 0; ; {
			i := bytes.Index(text[at:], []byte(form))
			if i < 0 {
				break
			}
			from, to := at+i, at+i+len(form)
			at = from + 1
			if strings.IndexFunc(form, notBase64) < 0 {
				from, to = widen(text, from, to)
			}
			spans = append(spans, span{from, to})
		}
	}
	return spans
}

// widen takes in the neighbours in a base64 text, which hold a few bits of the secret, and the padding.
func widen(text []byte, from, to int) (int, int) {
	if from > 0 && base64Char(text[from-1]) {
		from--
	}
	for most := to + 3; to < len(text) && to < most && base64Char(text[to]); to++ {
		if to > most-3 && text[to] != '=' {
			break
		}
	}
	return from, to
}

func notBase64(r rune) bool { return r > 0x7f || !base64Char(byte(r)) } //nolint:gosec // it is below 0x80 here

// minPartial is how much of a secret's beginning counts as such at the end of a text that broke off.
const minPartial = 4

// longestEscape is the length of the longest escape that decoders read, two deep.
const longestEscape = 24

// partialEnds finds the ends of the text that begin a form, also where the text broke off within an escape.
func partialEnds(text []byte, forms []string) []span {
	var spans []span
	for end := len(text); end >= 0 && end > len(text)-longestEscape; end-- {
		if end < len(text) && strings.IndexByte(`%\&`, text[end]) < 0 {
			continue
		}
		for _, v := range views(text[:end]) {
			if n := partialEnd(v.text, forms); n > 0 {
				spans = append(spans, span{v.origins(text[:end])[len(v.text)-n].from, len(text)})
			}
		}
	}
	return spans
}

// partialEnd is the length of the longest end of the text that begins a form.
func partialEnd(text []byte, forms []string) int {
	longest := 0
	for _, form := range forms {
		for n := min(len(form)-1, len(text)); n >= minPartial && n > longest; n-- {
			if string(text[len(text)-n:]) == form[:n] {
				longest = n
			}
		}
	}
	return longest
}

func replaceSpans(text []byte, spans []span) []byte {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var out []byte
	at := 0
	for i := 0; i < len(spans); {
		from, to := spans[i].from, spans[i].to
		for i++; i < len(spans) && spans[i].from <= to; i++ {
			to = max(to, spans[i].to)
		}
		out = append(out, text[at:from]...)
		out = append(out, Redacted...)
		at = to
	}
	return append(out, text[at:]...)
}
