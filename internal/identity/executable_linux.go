package identity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// file tells one version of one file from every other.
type file struct {
	dev, ino uint64
	size     int64
	modified unix.Timespec
	changed  unix.Timespec // cannot be set back, unlike modified
}

func statFile(path string) (file, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return file{}, err
	}
	return file{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, modified: st.Mtim, changed: st.Ctim}, nil
}

func (f file) same(other file) bool { return f.dev == other.dev && f.ino == other.ino }

const deleted = " (deleted)" // what the kernel appends to the path of a file that is gone from its directory

// executable reads the program of the process. All of it goes through /proc/PID/exe, which is the running file itself,
// whatever stands at its path by now. A process that starts another program meanwhile is read again.
func (p *process) executable() (executable, file, error) {
	for range 3 {
		link, err := os.Readlink(p.proc("exe"))
		if err != nil {
			return executable{}, file{}, gone(err)
		}
		running, err := statFile(p.proc("exe"))
		if err != nil {
			return executable{}, file{}, gone(err)
		}
		e := executable{digest: digests.of(p.proc("exe"), running)}
		e.path, e.named = p.name(link, running)
		if again, err := os.Readlink(p.proc("exe")); err != nil || again != link {
			continue
		}
		if again, err := statFile(p.proc("exe")); err == nil && again.same(running) {
			return e, running, nil
		}
	}
	return executable{}, file{}, errors.New("the process keeps changing its program")
}

// name says what the running file is called, and whether that name holds for us as well.
func (p *process) name(link string, running file) (path string, named bool) {
	if there, err := statFile(link); err == nil && there.same(running) {
		return link, true
	}
	path, isDeleted := strings.CutSuffix(link, deleted)
	// An update replaces the file under a running program. The name was true once if the process sees our own mounts
	// and the file lay where the name says: a detached mount could show any name.
	if isDeleted && p.sharesMounts() {
		dir, err := statFile(filepath.Dir(path))
		return path, err == nil && dir.dev == running.dev
	}
	return path, false
}

func (p *process) sharesMounts() bool {
	theirs, err := os.Readlink(p.proc("ns/mnt"))
	if err != nil {
		return false
	}
	ours, err := os.Readlink("/proc/self/ns/mnt")
	return err == nil && ours == theirs
}
