package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"deed.dev/deed/internal/store"
)

const lockName = "deed.lock"

// errHeld is what the system-specific part says when another process holds the lock.
var errHeld = errors.New("held by another process")

// dirLock holds a data directory for one process. The system lets go of it when the process ends, however it ends. The
// file stays: removing it would let two processes lock two files of one name.
type dirLock struct{ file *os.File }

func lockDir(dir string, now time.Time) (*dirLock, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, explain(dir, fmt.Errorf("lock the data directory: %w", err))
	}
	if err := tryLock(f); err != nil {
		defer f.Close()
		if errors.Is(err, errHeld) {
			return nil, fmt.Errorf("%w: %s holds %s", store.ErrLocked, holder(f), dir)
		}
		return nil, explain(dir, fmt.Errorf("lock the data directory: %w", err))
	}
	l := &dirLock{f}
	if err := l.sign(now); err != nil {
		return nil, errors.Join(explain(dir, fmt.Errorf("write the lock file: %w", err)), l.release())
	}
	return l, nil
}

// sign writes who holds the lock, for people and for the message that a second process gives.
func (l *dirLock) sign(now time.Time) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt(fmt.Appendf(nil, "pid %d\nsince %s\n", os.Getpid(), now.UTC().Format(time.RFC3339)), 0)
	return err
}

// holder reads what sign wrote. Half a file, or none, names nobody.
func holder(f *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 200))
	if err != nil {
		return "another process"
	}
	var pid int
	var since string
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "pid":
			pid, _ = strconv.Atoi(value)
		case "since":
			since = value
		}
	}
	if pid <= 0 || since == "" {
		return "another process"
	}
	return fmt.Sprintf("process %d, since %s,", pid, since)
}

func (l *dirLock) release() error {
	return errors.Join(unlock(l.file), l.file.Close())
}
