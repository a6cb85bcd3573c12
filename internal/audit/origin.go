package audit

import (
	"bytes"

	"deed.dev/deed/journal"
)

// OriginBeside is the name of the journal that the checkpoint beside an export claims to be of, "" when there is none. It is
// good for choosing a key and for nothing else: nobody has checked it.
func OriginBeside(path string) string {
	segments, err := Segments(path)
	if err != nil {
		return ""
	}
	signed, err := segments[len(segments)-1].beside()
	if err != nil || signed == nil {
		return ""
	}
	c, err := journal.ReadCheckpoint(signed)
	if err != nil {
		return ""
	}
	return c.Origin
}

// OriginOfReceipt is the same for a receipt.
func OriginOfReceipt(text []byte) string {
	_, signed, _ := bytes.Cut(text, []byte("\n\n"))
	c, err := journal.ReadCheckpoint(signed)
	if err != nil {
		return ""
	}
	return c.Origin
}
