package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deed.dev/deed/internal/store"
	"modernc.org/sqlite"
)

const databaseName = "deed.db"

// Options say how a store is opened. Only Origin is needed, and only for a new journal.
type Options struct {
	// Origin names the journal, like gw.example/audit/prod-1. Record 0 states it for ever: opening an existing journal
	// under another name is refused, and "" takes the name that it has.
	Origin string
	// Key gives the public key of the log, which record 0 of a new journal states. It is asked only when a journal is begun,
	// with the journal's name. nil means that the journal names none.
	Key func(origin string) (string, error)
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// QueueLimit is how many changes may wait; 0 means 4096.
	QueueLimit int
	// Committed is told after each commit how many records are durable. It must not block. nil means that nobody listens.
	Committed func(size int64)
	// Logger hears of the faults that no caller waits for; nil means silence.
	Logger *slog.Logger
	// TestOnlyNoSync gives up durability, so that a benchmark can tell the cost of it. An acknowledged change may be lost.
	TestOnlyNoSync bool
}

// Store is a store.Store in one directory.
type Store struct {
	*reader
	log   *slog.Logger
	lock  *dirLock
	write *writer
	queue *queue
	done  chan struct{} // closed when the committer has ended

	committed func(size int64)

	closing  sync.Once
	closeErr error
}

var _ store.Store = (*Store)(nil)

// Open opens the store in dir, and makes both if they are not there. It holds the directory until Close: a second process
// gets store.ErrLocked. It checks the schema, the settings and the end of the journal, and refuses whatever is not sound.
func Open(ctx context.Context, dir string, opts Options) (s *Store, err error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.QueueLimit <= 0 {
		opts.QueueLimit = 4096
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir, opts.Now())
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, databaseName)
	defer func() {
		if err != nil {
			err = errors.Join(explain(path, err), lock.release())
		}
	}()
	if err := makeFile(path); err != nil {
		return nil, err
	}
	// SQLite syncs with fsync unless told that fdatasync is there: the same durability without waiting for timestamps.
	_, _ = sqlite.Fdatasync(true)
	w, err := openWriter(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	r, err := openReader(ctx, path)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	s = &Store{reader: r, log: opts.Logger, lock: lock, write: w, queue: newQueue(opts.QueueLimit), done: make(chan struct{}), committed: opts.Committed}
	go s.commitUntilClosed()
	return s, nil
}

// OpenReader opens the store in dir for reading only, also while another process holds it. It never writes a record.
func OpenReader(ctx context.Context, dir string) (*Reader, error) {
	path := filepath.Join(dir, databaseName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open the store for reading: %w", err)
	}
	r, err := openReader(ctx, path)
	if err != nil {
		return nil, explain(path, err)
	}
	return &Reader{r}, nil
}

// Reader is a store.Reader that stands alone.
type Reader struct{ *reader }

var _ store.Reader = (*Reader)(nil)

// Close gives the connections back.
func (r *Reader) Close() error { return r.close() }

// Close waits for the changes that are queued, then gives everything back. Changes that come later are refused.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.close()
		<-s.done
		s.closeErr = errors.Join(s.reader.close(), s.write.close(), s.lock.release())
	})
	return s.closeErr
}

// makeDir makes the directory for its owner alone.
func makeDir(dir string) error {
	if isMemory(dir) {
		return fmt.Errorf("the store %q would be gone with the process: give a directory", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return explain(dir, fmt.Errorf("make the data directory: %w", err))
	}
	return nil
}

// isMemory recognises the names under which SQLite keeps a database in memory.
func isMemory(dir string) bool {
	return dir == "" || dir == ":memory:" || len(dir) >= 5 && dir[:5] == "file:"
}

// makeFile makes an empty database file with the right mode before SQLite makes one with another. The WAL and its index
// get the mode of the database from SQLite.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	// A file whose name is not on the disk is lost in a power cut, however well its content was synced.
	dir := filepath.Dir(path)
	if err := errors.Join(syncDir(dir), syncDir(filepath.Dir(dir))); err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	return nil
}
