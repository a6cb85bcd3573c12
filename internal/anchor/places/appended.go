package places

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/journal"
)

// File appends every checkpoint to one file that somebody else owns. It is never created, cut or replaced from here, so it
// may be one that the system itself lets grow and nothing else (chattr +a): then the writer can add to it and take nothing
// back. An entry is an empty line, a line with the size of the journal and the length of the note, and the note; what a crash
// has torn is passed over, since the next entry begins on a line of its own.
type File struct {
	name string
	path string
	keys []journal.Key
	kept []byte // the newest checkpoint that was put there, so that none is put there twice
}

// NewFile is a place in a file that exists. keys are those of the journal.
func NewFile(name, path string, keys []journal.Key) *File {
	return &File{name: name, path: path, keys: keys}
}

const entryWord = "checkpoint"

// Name tells it apart from other places.
func (p *File) Name() string { return p.name }

// Check compares the journal with the entry of the largest size, wherever it stands: an older one that was added later hides
// nothing.
func (p *File) Check(ctx context.Context, head anchor.Head) error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	newest, err := largest(f)
	if err != nil || newest == nil {
		return err
	}
	return holds(ctx, p.name, p.keys, newest, head)
}

// largest returns the whole entry with the largest size; nil when there is none.
func largest(r io.Reader) (note []byte, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var size uint64
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return note, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		at, length, ok := entryHead(string(line))
		if !ok {
			continue
		}
		// It is only looked at: a length that is made up, or torn, must not swallow the entries after it.
		whole, err := lines.Peek(length)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(whole) == length && (note == nil || at > size) && isNoteOf(whole, at) {
			size, note = at, bytes.Clone(whole)
		}
	}
}

// maxEntry is less than what the reader can look at.
const maxEntry = 32 << 10

func entryHead(line string) (size uint64, length int, ok bool) {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if len(fields) != 3 || fields[0] != entryWord {
		return 0, 0, false
	}
	size, err := strconv.ParseUint(fields[1], 10, 64)
	length, errLength := strconv.Atoi(fields[2])
	return size, length, err == nil && errLength == nil && length > 0 && length <= maxEntry
}

func isNoteOf(text []byte, size uint64) bool {
	c, err := journal.ReadCheckpoint(text)
	return err == nil && c.Size == size
}

// Keep adds the checkpoint in one write and waits until it is on disk.
func (p *File) Keep(_ context.Context, head anchor.Head) ([]byte, error) {
	if bytes.Equal(p.kept, head.Signed) {
		return nil, nil
	}
	f, err := os.OpenFile(p.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	entry := fmt.Appendf(nil, "\n%s %d %d\n%s", entryWord, head.Size, len(head.Signed), head.Signed)
	_, err = f.Write(entry)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	p.kept = bytes.Clone(head.Signed)
	return nil, nil
}
