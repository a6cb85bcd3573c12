package agefile

import (
	"errors"
	"fmt"
	"os"
)

// Lock keeps other writers away until release is called. The system lets go when the process ends, however it ends. The
// lock is a file beside the vault's, which is replaced and so cannot carry it; it stays, since removing it would let two
// writers lock two files of one name.
func Lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the vault's file: %w", err)
	}
	if err := tryLock(f); err != nil {
		_ = f.Close()
		if errors.Is(err, errHeld) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("lock the vault's file: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

var errHeld = errors.New("held by another process")
