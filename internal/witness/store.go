package witness

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deed.dev/deed/internal/atomicfile"
	"deed.dev/deed/internal/dirlock"
	"deed.dev/deed/journal"
)

// store remembers the last checkpoint of each log that was cosigned: its size and root. All logs are in one file, so that
// what was forgotten is seen as a file that is missing, and never as a log that is new.
type store struct {
	path string
	key  string // of the witness
	lock *dirlock.Lock
	turn chan struct{} // holds one token: whoever has it decides and writes
	seen map[string]journal.Checkpoint
}

const (
	stateName   = "state.json"
	stateFormat = "deed-witness/1"
	maxState    = 64 << 20
)

type stateFile struct {
	Format string     `json:"format"`
	Key    string     `json:"key"` // of the witness: a state belongs to what was signed with this key
	Logs   []stateLog `json:"logs"`
}

type stateLog struct {
	Origin string `json:"origin"`
	Size   uint64 `json:"size"`
	Root   string `json:"root"` // base64, as in checkpoints
}

// openStore reads the state and holds the directory. A state that is missing or cannot be read is an error: a witness that
// forgets would sign a second history.
func openStore(dir string, key journal.Key) (*store, error) {
	lock, err := dirlock.Hold(dir)
	if err != nil {
		return nil, err
	}
	s := &store{path: filepath.Join(dir, stateName), key: key.String(), lock: lock, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	if s.seen, err = readState(s.path, key); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return s, nil
}

// close waits for the change that is under way.
func (s *store) close() error {
	<-s.turn
	return s.lock.Release()
}

// advance replaces the last checkpoint of a log by head, if allowed says so of the one that was seen before. One caller at
// a time asks, decides and writes. The new one is durable when advance returns nil.
func (s *store) advance(ctx context.Context, head journal.Checkpoint, allowed func(seen journal.Checkpoint) error) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	seen, ok := s.seen[head.Origin]
	if !ok {
		seen = empty(head.Origin)
	}
	if err := allowed(seen); err != nil {
		return err
	}
	if ok && seen == head {
		return nil
	}
	next := make(map[string]journal.Checkpoint, len(s.seen)+1)
	for origin, c := range s.seen {
		next[origin] = c
	}
	next[head.Origin] = head
	if err := writeState(s.path, s.key, next); err != nil {
		return fmt.Errorf("remember the checkpoint: %w", err)
	}
	s.seen = next
	return nil
}

// empty is where every log begins.
func empty(origin string) journal.Checkpoint {
	var t journal.Tree
	return journal.Checkpoint{Origin: origin, Root: t.Root()}
}

func writeState(path, key string, seen map[string]journal.Checkpoint) error {
	f := stateFile{Format: stateFormat, Key: key, Logs: []stateLog{}}
	for _, c := range seen {
		f.Logs = append(f.Logs, stateLog{c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:])})
	}
	slices.SortFunc(f.Logs, func(a, b stateLog) int { return strings.Compare(a.Origin, b.Origin) })
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(text, '\n'))
}

func readState(path string, key journal.Key) (map[string]journal.Checkpoint, error) {
	f, err := decodeState(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is gone, and with it what this key has signed; a witness that forgets would sign a second history. Restore the file, or make a new witness with a new key", path)
	}
	if err != nil {
		return nil, err
	}
	if f.Key != key.String() {
		return nil, fmt.Errorf("%s belongs to another key than the one beside it", path)
	}
	seen := map[string]journal.Checkpoint{}
	for _, log := range f.Logs {
		root, ok := parseHash(log.Root)
		c := journal.Checkpoint{Origin: log.Origin, Size: log.Size, Root: root}
		if _, err := journal.ParseCheckpoint(c.String()); !ok || err != nil {
			return nil, fmt.Errorf("%s: the entry of %q is no checkpoint", path, log.Origin)
		}
		if _, twice := seen[log.Origin]; twice {
			return nil, fmt.Errorf("%s: %q stands there twice", path, log.Origin)
		}
		seen[log.Origin] = c
	}
	return seen, nil
}

func decodeState(path string) (f stateFile, err error) {
	text, err := readBounded(path, maxState)
	if err != nil {
		return f, err
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil || d.More() {
		return f, fmt.Errorf("%s cannot be read as the state of a witness: %w", path, err)
	}
	if f.Format != stateFormat {
		return f, fmt.Errorf("%s has the format %q, want %q", path, f.Format, stateFormat)
	}
	return f, nil
}
