package vault

// view is a text as it reads when some escapes are decoded, one kind after the other.
type view struct {
	text  []byte
	steps []*decoder
}

// decoder undoes one kind of escape. read decodes the escape at the start of a text and gives what it stands for and how
// many bytes it takes, or 0 where there is none.
type decoder struct {
	marks [256]bool // the bytes that an escape can start with
	read  func([]byte) (string, int)
}

var decoders = []*decoder{
	newDecoder("%", percent),
	newDecoder("%+", form),
	newDecoder(`\`, jsonEscape),
	newDecoder("&", entity),
	newDecoder("\r\n", lineBreak),
}

func newDecoder(marks string, read func([]byte) (string, int)) *decoder {
	d := &decoder{read: read}
	for i := range len(marks) {
		d.marks[marks[i]] = true
	}
	return d
}

// views gives the text as it is and each way to decode it, two escapes deep.
func views(text []byte) []view {
	all := []view{{text: text}}
	for _, first := range decoders {
		once, ok := first.decode(text)
		if !ok {
			continue
		}
		all = append(all, view{once, []*decoder{first}})
		for _, second := range decoders {
			if twice, ok := second.decode(once); ok {
				all = append(all, view{twice, []*decoder{first, second}})
			}
		}
	}
	return all
}

// decode gives the decoded text, or false where there is nothing to decode.
func (d *decoder) decode(text []byte) ([]byte, bool) {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		if !d.marks[text[i]] {
			i++
			continue
		}
		decoded, n := d.read(text[i:])
		if n == 0 {
			i++
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(text))
		}
		out = append(append(out, text[done:i]...), decoded...)
		i += n
		done = i
	}
	if done == 0 {
		return nil, false
	}
	return append(out, text[done:]...), true
}

// origins gives, for each byte of the view, the part of the original text that it came from. It decodes once more, which
// only a text with a secret in it is worth.
func (v view) origins(original []byte) []span {
	at := make([]span, len(original))
	for i := range at {
		at[i] = span{i, i + 1}
	}
	text := original
	for _, d := range v.steps {
		var next []span
		for i := 0; i < len(text); {
			decoded, n := "", 0
			if d.marks[text[i]] {
				decoded, n = d.read(text[i:])
			}
			if n == 0 {
				next = append(next, at[i])
				i++
				continue
			}
			for range len(decoded) {
				next = append(next, span{at[i].from, at[i+n-1].to})
			}
			i += n
		}
		text, _ = d.decode(text)
		at = next
	}
	return at
}
