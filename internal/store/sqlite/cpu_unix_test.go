//go:build unix

package sqlite_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpu is the time that this process has spent, in user and system.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
