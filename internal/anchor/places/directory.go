package places

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/journal"
)

// Directory keeps one file per checkpoint, named after its size. A file appears as a whole and is never written again, so
// somebody else can take files away while new ones come, and a crash leaves no half of one; a single file that grows would
// need both sides to agree on what a torn end means. It is for one journal.
type Directory struct {
	name string
	path string
	keys []journal.Key
}

// NewDirectory is a place in a directory that exists. keys are those of the journal.
func NewDirectory(name, path string, keys []journal.Key) *Directory {
	return &Directory{name, path, keys}
}

const suffix = ".checkpoint"

// fileName sorts by size.
func fileName(size uint64) string { return fmt.Sprintf("%016d%s", size, suffix) }

func sizeOf(name string) (size uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	size, err := strconv.ParseUint(digits, 10, 64)
	return size, ok && err == nil && fileName(size) == name
}

// Name tells it apart from other places.
func (d *Directory) Name() string { return d.name }

// Check compares the journal with the file of the largest size.
func (d *Directory) Check(ctx context.Context, head anchor.Head) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	newest, found := uint64(0), false
	for _, e := range entries {
		if size, ok := sizeOf(e.Name()); ok && (!found || size > newest) {
			newest, found = size, true
		}
	}
	if !found {
		return nil
	}
	signed, err := readCheckpoint(filepath.Join(d.path, fileName(newest)))
	if err != nil {
		return err
	}
	return holds(ctx, d.name, d.keys, signed, head)
}

// Keep puts the checkpoint into a file of its own.
func (d *Directory) Keep(ctx context.Context, head anchor.Head) ([]byte, error) {
	path := filepath.Join(d.path, fileName(head.Size))
	err := d.put(path, head.Signed)
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	there, err := readCheckpoint(path)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(there, head.Signed) {
		return nil, nil
	}
	return nil, holds(ctx, d.name, d.keys, there, head)
}

// put makes a file that does not exist yet, with its whole content at once: a link never replaces a name.
func (d *Directory) put(path string, content []byte) (err error) {
	temporary := filepath.Join(d.path, ".new-"+rand.Text())
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // others are meant to read it
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return syncDir(d.path)
}

func readCheckpoint(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no regular file", path), err)
	}
	return io.ReadAll(io.LimitReader(f, maxCheckpoint))
}
