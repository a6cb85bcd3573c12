package sqlite

import (
	"fmt"
	"os"
)

// guard remembers which files the store writes to. A removed file can still be written through an open connection: every
// commit would succeed, and all of them be gone with the process. Into one that was cut, SQLite would write on behind the hole.
type guard struct {
	paths []string
	files []os.FileInfo
	sizes []int64 // as of the newest commit; none of these files ever shrinks while the store is open
}

func newGuard(paths ...string) (guard, error) {
	g := guard{paths: paths}
	for _, p := range paths {
		info, err := os.Lstat(p)
		if err != nil {
			return guard{}, fmt.Errorf("look at the database files: %w", err)
		}
		g.files, g.sizes = append(g.files, info), append(g.sizes, info.Size())
	}
	return g, nil
}

// note takes the sizes after a commit.
func (g *guard) note() error {
	for i, p := range g.paths {
		info, err := os.Lstat(p)
		if err != nil {
			return fmt.Errorf("look at the database files: %w", err)
		}
		g.sizes[i] = info.Size()
	}
	return nil
}

// check costs one system call for each file.
func (g *guard) check() error {
	for i, p := range g.paths {
		info, err := os.Lstat(p)
		switch {
		case os.IsNotExist(err):
			return fmt.Errorf("the file %s was removed", p)
		case err != nil:
			return fmt.Errorf("look at the database files: %w", err)
		case !os.SameFile(info, g.files[i]):
			return fmt.Errorf("the file %s was replaced", p)
		case info.Size() < g.sizes[i]:
			return fmt.Errorf("the file %s was cut from %d bytes to %d", p, g.sizes[i], info.Size())
		}
	}
	return nil
}
