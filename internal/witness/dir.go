package witness

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"deed.dev/deed/internal/atomicfile"
	"deed.dev/deed/journal"
)

// What lies in the directory of a witness, beside its state.
const (
	keyName  = "witness.key" // private, readable by its owner alone
	logsName = "logs.policy" // the logs that it watches, as lines of C2SP tlog-policy
	maxKey   = 4 << 10
	maxLogs  = 1 << 20
)

const newLogs = `# The logs that this witness watches, one a line: log <verifier key>
quorum none
`

// ErrExists means that the directory is in use, so that no new witness was made in it.
var ErrExists = errors.New("the directory is not empty; a witness is made once, in a directory of its own")

// Create makes a witness of that name, with a new key, in a directory that is empty or not there. The key is written last:
// what was interrupted before is no witness.
func Create(dir, name string) (journal.Key, error) {
	private, _, err := journal.GenerateKey(rand.Reader, name)
	if err != nil {
		return journal.Key{}, err
	}
	cosigner, err := journal.NewCosigner(private)
	if err != nil {
		return journal.Key{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return journal.Key{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return journal.Key{}, err
	}
	if len(entries) > 0 {
		return journal.Key{}, fmt.Errorf("%s: %w", dir, ErrExists)
	}
	for _, step := range []func() error{
		func() error { return writeState(filepath.Join(dir, stateName), cosigner.Key().String(), nil) },
		func() error { return atomicfile.Write(filepath.Join(dir, logsName), []byte(newLogs)) },
		func() error { return atomicfile.Write(filepath.Join(dir, keyName), []byte(private+"\n")) },
	} {
		if err := step(); err != nil {
			return journal.Key{}, fmt.Errorf("make a witness: %w", err)
		}
	}
	return cosigner.Key(), nil
}

// Open reads a witness and holds its directory until Close. now is its clock.
func Open(dir string, now func() time.Time, log *slog.Logger) (*Witness, error) {
	cosigner, err := readCosigner(filepath.Join(dir, keyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no witness in %s; make one with deed witness init", dir)
	}
	if err != nil {
		return nil, err
	}
	logs, err := readLogs(filepath.Join(dir, logsName))
	if err != nil {
		return nil, err
	}
	store, err := openStore(dir, cosigner.Key())
	if err != nil {
		return nil, err
	}
	return &Witness{cosigner: cosigner, logs: logs, store: store, now: now, log: log}, nil
}

// Keys returns the public key of the witness in dir and those of the logs that it watches, without holding the directory.
func Keys(dir string) (own journal.Key, logs []journal.Key, err error) {
	cosigner, err := readCosigner(filepath.Join(dir, keyName))
	if err != nil {
		return own, nil, err
	}
	policy, err := readLogs(filepath.Join(dir, logsName))
	if err != nil {
		return own, nil, err
	}
	return cosigner.Key(), policy.Logs, nil
}

// Watch adds a log to those that the witness in dir watches from its next start on.
func Watch(dir string, log journal.Key) error {
	path := filepath.Join(dir, logsName)
	policy, err := readLogs(path)
	if err != nil {
		return err
	}
	for _, known := range policy.Logs {
		if known == log {
			return nil
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("log " + log.String() + "\n") // one write, and half a line is found when the file is read
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	_, err = readLogs(path)
	return err
}

func readCosigner(path string) (*journal.Cosigner, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is open to other users, who can then sign as this witness; make a new one with a new key", path)
	}
	text, err := readBounded(path, maxKey)
	if err != nil {
		return nil, err
	}
	cosigner, err := journal.NewCosigner(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cosigner, nil
}

func readLogs(path string) (*journal.Policy, error) {
	text, err := readBounded(path, maxLogs)
	if err != nil {
		return nil, err
	}
	policy, err := journal.ParsePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(policy.Witnesses) > 0 || policy.AsksForWitnesses() {
		return nil, fmt.Errorf("%s: a witness asks no other witness; write log lines only", path)
	}
	return policy, nil
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return text, nil
}
