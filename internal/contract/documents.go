package contract

import "strings"

// document is one YAML document as a tree of canonical values, with the places that its values have in the text.
type document struct {
	file   string
	root   any
	places places
}

// place is where a value begins, and how it is written.
type place struct {
	line, column int
	style        style
}

type style int

const (
	plain style = iota
	quoted
	block
)

// places finds values by their JSON pointer. A key's place is kept under its pointer and keyMark.
type places map[string]place

const keyMark = "\x00key"

// of is the place of a value, or of its nearest parent that stands in the text.
func (p places) of(pointer string) place {
	for {
		if at, ok := p[pointer]; ok {
			return at
		}
		if pointer == "" {
			return place{line: 1, column: 1}
		}
		pointer = parent(pointer)
	}
}

// key is the place of a member's name.
func (p places) key(pointer string) place {
	if at, ok := p[pointer+keyMark]; ok {
		return at
	}
	return p.of(pointer)
}

// chunk is the text of one document.
type chunk struct {
	text string
	line int // lines of the file before it
}

// splitDocuments cuts at the document markers. YAML gives --- at the start of a line no other meaning, wherever it stands.
func splitDocuments(data []byte) []chunk {
	var chunks []chunk
	text, before := strings.Builder{}, 0
	for n, line := range strings.SplitAfter(string(data), "\n") {
		marker := strings.TrimRight(line, " \t\r\n")
		if marker == "---" || marker == "..." || strings.HasPrefix(line, "--- #") {
			chunks = append(chunks, chunk{text.String(), before})
			text.Reset()
			before = n + 1
			continue
		}
		text.WriteString(line)
	}
	return append(chunks, chunk{text.String(), before})
}
