package sqlite

import (
	"fmt"
	"os"
)

// guard remembers which files the store writes to. A removed file can still be written through an open connection: every
// commit would succeed, and all of them be gone with the process.
type guard struct {
	paths []string
	files []os.FileInfo
}

func newGuard(paths ...string) (guard, error) {
	g := guard{paths: paths}
	for _, p := range paths {
		info, err := os.Lstat(p)
		if err != nil {
			return guard{}, fmt.Errorf("look at the database files: %w", err)
		}
		g.files = append(g.files, info)
	}
	return g, nil
}

// check costs one system call for each file.
func (g guard) check() error {
	for i, p := range g.paths {
		info, err := os.Lstat(p)
		switch {
		case os.IsNotExist(err):
			return fmt.Errorf("the file %s was removed", p)
		case err != nil:
			return fmt.Errorf("look at the database files: %w", err)
		case !os.SameFile(info, g.files[i]):
			return fmt.Errorf("the file %s was replaced", p)
		}
	}
	return nil
}
