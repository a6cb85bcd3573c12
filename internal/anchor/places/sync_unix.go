//go:build unix

package places

import (
	"errors"
	"io/fs"
	"os"
)

// syncDir makes a new name durable. A directory that this user may write and not read is synced by whoever reads it.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
