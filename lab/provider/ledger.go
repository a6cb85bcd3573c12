package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Row is one effect: something that the provider did because of a request.
type Row struct {
	Seq           int64           `json:"seq"`
	Time          time.Time       `json:"time"`
	Op            string          `json:"op"`
	ID            string          `json:"id"`
	Key           string          `json:"key"`
	Status        int             `json:"status"`
	RequestDigest string          `json:"request_digest"`
	RequestID     string          `json:"request_id"`
	Body          json.RawMessage `json:"body"`

	// Answer is what the caller was told if that was not Body.
	Answer string `json:"answer,omitempty"`
}

// answer is what the first request was told, and what a replay is told.
func (r Row) answer() answer {
	if r.Answer != "" {
		return answer{status: r.Status, body: []byte(r.Answer)}
	}
	return answer{status: r.Status, body: r.Body}
}

// ReadLedger reads a ledger file, also while another process writes it.
// A last line without an end is not a row: no caller was told of it.
func ReadLedger(path string) ([]Row, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	rows, _, err := parseRows(data)
	if err != nil {
		return nil, fmt.Errorf("read ledger %s: %w", path, err)
	}
	return rows, nil
}

// parseRows returns the rows and the number of bytes that they take. What is
// left after them is a torn line.
func parseRows(data []byte) (rows []Row, size int, err error) {
	for {
		end := bytes.IndexByte(data[size:], '\n')
		if end < 0 {
			return rows, size, nil
		}
		var row Row
		if err := json.Unmarshal(data[size:size+end], &row); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", len(rows)+1, err)
		}
		if row.Seq != int64(len(rows)+1) {
			return nil, 0, fmt.Errorf("line %d has sequence number %d", len(rows)+1, row.Seq)
		}
		rows = append(rows, row)
		size += end + 1
	}
}

var errLedgerBroken = errors.New("the ledger could not be written and takes no more rows")

// ledger is the file of rows. Many requests can share one fsync: each writes
// its row, and whoever comes first to sync makes all written rows durable.
type ledger struct {
	file    *os.File
	written atomic.Int64 // the last row that is wholly in the file
	broken  atomic.Bool  // a failed write or sync is never tried again

	syncing sync.Mutex
	synced  int64 // the last row known to be on disk
}

// openLedger returns the ledger, its rows and the torn last line, if any.
// The torn line is moved to a file of the same name that ends in .torn.
func openLedger(path string) (l *ledger, rows []Row, torn []byte, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open ledger: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			err = fmt.Errorf("open ledger %s: %w", path, err)
		}
	}()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, nil, nil, err
	}
	rows, size, err := parseRows(data)
	if err != nil {
		return nil, nil, nil, err
	}
	if torn = data[size:]; len(torn) > 0 {
		if err := setAside(path+".torn", torn); err != nil {
			return nil, nil, nil, err
		}
		if err := file.Truncate(int64(size)); err != nil {
			return nil, nil, nil, err
		}
	}
	// The rows found may have been written but never synced before a crash.
	if err := file.Sync(); err != nil {
		return nil, nil, nil, err
	}
	if err := syncFile(filepath.Dir(path)); err != nil {
		return nil, nil, nil, err
	}
	l = &ledger{file: file, synced: int64(len(rows))}
	l.written.Store(l.synced)
	return l, rows, torn, nil
}

func setAside(path string, torn []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(bytes.Clone(torn), '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// append writes the row. It is durable only after sync. Calls do not overlap.
func (l *ledger) append(row Row) error {
	if l.broken.Load() {
		return errLedgerBroken
	}
	line := append(encode(row), '\n')
	if _, err := l.file.Write(line); err != nil {
		l.broken.Store(true)
		return fmt.Errorf("write ledger: %w", err)
	}
	l.written.Store(row.Seq)
	return nil
}

// sync returns once row seq is on disk.
func (l *ledger) sync(seq int64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.synced >= seq {
		return nil
	}
	if l.broken.Load() {
		return errLedgerBroken
	}
	written := l.written.Load()
	if err := l.file.Sync(); err != nil {
		l.broken.Store(true)
		return fmt.Errorf("sync ledger: %w", err)
	}
	l.synced = written
	return nil
}

func (l *ledger) close() error {
	return l.file.Close()
}

// encode is compact JSON that leaves strings and digits as they are, so that
// an answer read back from the ledger has the bytes of the first answer.
func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
