package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"deed.dev/deed/internal/atomicfile"
	"deed.dev/deed/journal"
)

// ErrNothingNew means that an archive has all records already.
var ErrNothingNew = errors.New("the archive has all records already")

// Signed gives the signed checkpoint of the records before size, 0 for all that are there, and that size.
type Signed func(ctx context.Context, size uint64) ([]byte, error)

// WriteFile exports into a file that only its owner can read, and puts a checkpoint of the end beside it. The file appears
// whole or not at all, and an existing one is not touched.
func WriteFile(ctx context.Context, r Records, sign Signed, path string, span Span) (Exported, error) {
	if span.End == 0 {
		top, err := r.Top(ctx)
		if err != nil {
			return Exported{}, err
		}
		span.End = top.Size
	}
	var done Exported
	err := writeNew(path, func(w io.Writer) (err error) {
		done, err = Export(ctx, r, w, span)
		return err
	})
	if err != nil {
		return done, err
	}
	signed, err := sign(ctx, span.End)
	if err != nil {
		return done, fmt.Errorf("the records are in %s, and no checkpoint of them could be signed: %w", path, err)
	}
	if err := atomicfile.Write(path+CheckpointSuffix, signed); err != nil {
		return done, fmt.Errorf("write the checkpoint beside the export: %w", err)
	}
	return done, nil
}

// Continue adds the next segment to an archive, which is a directory: all records after those that it has. Each segment has a
// checkpoint of its end. Old segments may be removed with theirs, oldest first, and the rest still verifies.
func Continue(ctx context.Context, r Records, sign Signed, dir string) (Exported, string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Exported{}, "", err
	}
	from, err := archived(ctx, r, dir)
	if err != nil {
		return Exported{}, "", err
	}
	top, err := r.Top(ctx)
	if err != nil {
		return Exported{}, "", err
	}
	if from == top.Size {
		return Exported{Origin: top.Origin, Span: Span{from, from}}, "", ErrNothingNew
	}
	path := filepath.Join(dir, fmt.Sprintf("journal-%016d%s", from, EventsSuffix))
	done, err := WriteFile(ctx, r, sign, path, Span{from, top.Size})
	return done, path, err
}

// archived finds where an archive ends, and makes sure that it is one of this journal.
func archived(ctx context.Context, r Records, dir string) (uint64, error) {
	matches, err := filepath.Glob(filepath.Join(globSafe(dir), "*"+EventsSuffix))
	if err != nil || len(matches) == 0 {
		return 0, err
	}
	segments, err := Segments(dir)
	if err != nil {
		return 0, err
	}
	last := segments[len(segments)-1]
	signed, err := last.beside()
	if err != nil {
		return 0, err
	}
	if signed == nil {
		return 0, fmt.Errorf("%s has no checkpoint beside it, so where it ends is not known\nNothing was written. Remove the file, and it is written anew",
			last.Path)
	}
	end, err := journal.ReadCheckpoint(signed)
	if err != nil {
		return 0, fmt.Errorf("%s%s: %w", last.Path, CheckpointSuffix, err)
	}
	top, err := r.Top(ctx)
	if err != nil {
		return 0, err
	}
	if end.Origin != top.Origin {
		return 0, fmt.Errorf("%s is an archive of the journal %s, and this is %s\nNothing was written; give another directory", dir, end.Origin, top.Origin)
	}
	if end.Size > top.Size {
		return 0, fmt.Errorf("%w: the archive in %s has %d records, and the journal has %d", ErrShorter, dir, end.Size, top.Size)
	}
	tree, err := journal.LoadTree(end.Size, r.Tree(ctx))
	if err != nil {
		return 0, err
	}
	if tree.Root() != end.Root {
		return 0, fmt.Errorf("%w than the archive in %s, at the size %d\nNothing was written; verify both", ErrRewritten, dir, end.Size)
	}
	return end.Size, nil
}

// writeNew writes a file for its owner alone under a name that is not taken: first beside it, then, when all is on the disk,
// under its name.
func writeNew(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists; nothing was written, since an export may be evidence: give another name", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	buffered := newBuffer(f)
	if err := errors.Join(write(buffered), buffered.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path) // unlike a rename it never replaces
	if err != nil && !errors.Is(err, os.ErrExist) {
		return os.Rename(f.Name(), path) // a file system without links
	}
	return err
}

const bufferSize = 1 << 18

func newBuffer(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, bufferSize) }
