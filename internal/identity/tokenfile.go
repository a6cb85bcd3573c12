package identity

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"deed.dev/deed/internal/atomicfile"
)

const (
	tokenFormat  = "deed-tokens/1"
	maxTokenFile = 16 << 20
)

type tokenFile struct {
	Format string      `json:"format"`
	Tokens []TokenInfo `json:"tokens"`
}

// stamp tells whether a file is still the one that was read.
type stamp struct {
	info    fs.FileInfo // nil: there was no file
	settled bool        // it had been left alone for a while when it was read
}

// settleTime is how long a file has to be left alone before its time of change is trusted to show the next change:
// file times advance in steps.
const settleTime = 2 * time.Second

// current gives the tokens as the file has them now. Nobody else holds the slice that it returns.
func (t *Tokens) current() ([]TokenInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.loaded, t.list = stamp{}, nil
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	if !t.loaded.shows(info) {
		t.loaded, t.list = stamp{}, nil
		list, err := readTokens(t.path, info)
		if err != nil {
			return nil, fmt.Errorf("read tokens: %w", err)
		}
		t.loaded = stamp{info: info, settled: time.Since(info.ModTime()) > settleTime}
		t.list = list
	}
	return slices.Clone(t.list), nil
}

func (s stamp) shows(info fs.FileInfo) bool {
	return s.settled && s.info != nil && os.SameFile(s.info, info) && s.info.ModTime().Equal(info.ModTime()) && s.info.Size() == info.Size()
}

// readTokens refuses a file that others may read or write: the digests say who may call, and whoever writes one in is an
// actor.
func readTokens(path string, info fs.FileInfo) ([]TokenInfo, error) {
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to other users; run chmod 600 on it", path)
	}
	if !info.Mode().IsRegular() || info.Size() > maxTokenFile {
		return nil, fmt.Errorf("%s is no file of tokens", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var f tokenFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Format != tokenFormat {
		return nil, fmt.Errorf("%s has the format %q, want %q", path, f.Format, tokenFormat)
	}
	names := map[string]bool{}
	for i, token := range f.Tokens {
		digest, err := hex.DecodeString(token.SHA256)
		if !tokenName.MatchString(token.Name) || names[token.Name] || err != nil || len(digest) != 32 {
			return nil, fmt.Errorf("%s: entry %d has no usable name or digest", path, i+1)
		}
		names[token.Name] = true
	}
	return f.Tokens, nil
}

// change reads the file, changes the list and writes it back, with everybody else who does so kept out.
func (t *Tokens) change(edit func([]TokenInfo) ([]TokenInfo, error)) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	unlock, err := lockFile(t.path + ".lock")
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	defer unlock()
	list, err := t.current()
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	text, err := json.MarshalIndent(tokenFile{tokenFormat, list}, "", "  ")
	if err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	if err := atomicfile.Write(t.path, append(text, '\n')); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}
