//go:build unix

package identity

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits until this process alone holds the lock at path. The kernel gives it back when the process ends, so a
// crash leaves nothing locked. The file itself stays: removing it would let two processes lock two files of one name.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
