package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Suffixes of the files in which a journal is handed over.
const (
	EventsSuffix     = ".events"
	CheckpointSuffix = ".checkpoint" // after the whole name of the export
)

// Segment is one file of an export.
type Segment struct {
	Path string
	From uint64 // number of its first record
	Size int64  // in bytes
}

// Segments finds what to verify: a file, or the segments in a directory, in the order of their records.
func Segments(path string) ([]Segment, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = filepath.Glob(filepath.Join(globSafe(path), "*"+EventsSuffix)); err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("%s: there is no file *%s in it", path, EventsSuffix)
		}
	}
	var list []Segment
	for _, p := range paths {
		s, err := lookAt(p)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Segment) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return list, nil
}

// globSafe lets a directory's own name not be taken for a pattern.
func globSafe(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// lookAt reads as much of a file as says where it begins. That it is true, verifying finds out.
func lookAt(path string) (Segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return Segment{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Segment{}, err
	}
	s := Segment{Path: path, Size: info.Size()}
	lines := bufio.NewReader(io.LimitReader(f, 1<<14))
	for {
		line, err := lines.ReadString('\n')
		if !strings.HasPrefix(line, "#") {
			if err != nil && !errors.Is(err, io.EOF) {
				return s, err
			}
			return s, nil
		}
		if from, ok := strings.CutPrefix(line, "#from "); ok {
			s.From, _ = strconv.ParseUint(strings.TrimSpace(from), 10, 64)
		}
		if err != nil {
			return s, nil
		}
	}
}

// beside reads the checkpoint beside a segment, nil when there is none.
func (s Segment) beside() ([]byte, error) {
	text, err := os.ReadFile(s.Path + CheckpointSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// opener reads a segment that it opens at the first byte and closes at the last, so that a long journal in many segments needs
// one file at a time.
type opener struct {
	path string
	file *os.File
	done bool
}

func (o *opener) Read(p []byte) (int, error) {
	if o.done {
		return 0, io.EOF
	}
	if o.file == nil {
		f, err := os.Open(o.path)
		if err != nil {
			return 0, err
		}
		o.file = f
	}
	n, err := o.file.Read(p)
	if err != nil {
		o.close()
	}
	return n, err
}

func (o *opener) close() {
	o.done = true
	if o.file != nil {
		_ = o.file.Close() // it was read only
		o.file = nil
	}
}
