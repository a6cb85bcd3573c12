// Package atomicfile replaces small files so that a crash leaves the old content or the new, and never a part of either.
//
// It knows nothing of what is in a file, and keeps nobody out: callers that change what they have read hold a lock.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write puts content in the place of what path holds, readable by its owner alone. The content is on disk before the name
// points to it, and the name is on disk before Write returns.
func Write(path string, content []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone after the rename
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}
