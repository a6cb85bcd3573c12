package approval

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// PolicyFile is the path of a policy. It is read each time that somebody decides, so that whoever was taken out of it a
// moment ago decides nothing more.
type PolicyFile string

// maxPolicy bounds the file; a passkey takes a few hundred bytes.
const maxPolicy = 1 << 20

// Policy reads the file. Without one, or with one that others may write, nobody can decide, and the error says so.
func (f PolicyFile) Policy() (*Policy, error) {
	file, err := os.Open(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s, which names who may; `deed approver new NAME` prints what has to stand in it", filepath.Base(string(f)))
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read", filepath.Base(string(f)))
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no plain file", filepath.Base(string(f)))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("%s can be written by others than its owner, who could make themselves approvers; take that right away (chmod go-w)",
			filepath.Base(string(f)))
	}
	text, err := io.ReadAll(io.LimitReader(file, maxPolicy+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read", filepath.Base(string(f)))
	case len(text) > maxPolicy:
		return nil, fmt.Errorf("%s is larger than %d bytes", filepath.Base(string(f)), maxPolicy)
	}
	return ParsePolicy(text)
}

// Of finds the approver to whom a policy gives a key: a public key, or the id of a passkey.
func (p *Policy) Of(key []byte) (Approver, bool) {
	for _, a := range p.Approvers {
		for _, k := range a.Keys {
			if k.CLI != nil && string(k.CLI) == string(key) || k.Passkey != nil && string(k.Passkey.ID) == string(key) {
				return a, true
			}
		}
	}
	return Approver{}, false
}
