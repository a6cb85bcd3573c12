package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// A Windows lock keeps others from reading what it covers, so it covers one byte far behind the text.
func farByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1} }

func tryLock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, farByte())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, farByte())
}

// syncDir does nothing: Windows has no such call, and NTFS keeps names in its own journal.
func syncDir(string) error { return nil }
