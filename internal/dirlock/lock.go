// Package dirlock holds a directory for one process at a time. The system lets go of the lock when the process ends, however
// it ends.
//
// It knows nothing of what is in the directory, and keeps out only those who ask for the lock too.
package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrHeld means that another process holds the directory, or this one does already.
var ErrHeld = errors.New("the directory is held by another process")

// Lock is a directory that is held. Its file stays when it is released: removing it would let two processes lock two files
// of one name.
type Lock struct{ file *os.File }

// Hold takes the directory, or returns ErrHeld at once.
func Hold(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), f.Close())
	}
	return &Lock{f}, nil
}

// Release gives the directory back.
func (l *Lock) Release() error { return l.file.Close() }
