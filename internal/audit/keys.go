package audit

import (
	"context"
	"errors"
	"fmt"

	"deed.dev/deed/internal/logkey"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
)

// Names is the part of a journal that names the keys of its log.
type Names interface {
	// LogKeys lists the keys that the journal has named, newest first.
	LogKeys(ctx context.Context) ([]store.LogKey, error)
	// NameKey writes into the journal that its log signs with this key from now on.
	NameKey(ctx context.Context, key string) error
}

// KeyFor gives the name and the public key for a journal that is about to begin: the key in the directory, or a new one. A key
// has the name of its journal in it, so where nobody chose that name, it is the one of the key that is there.
func KeyFor(dir, origin string, chosen bool) (named, key string, err error) {
	d, err := logkey.Open(dir)
	if errors.Is(err, logkey.ErrMissing) {
		d, err = logkey.Create(dir, origin)
	}
	if err != nil {
		return "", "", err
	}
	if chosen && d.Signer().Origin() != origin {
		return "", "", fmt.Errorf("the key in %s is the one of the journal %s, and the new journal would be %s: give another key_dir, or the origin %s",
			dir, d.Signer().Origin(), origin, d.Signer().Origin())
	}
	return d.Signer().Origin(), d.Signer().Key().String(), nil
}

// OpenKeys opens the key of an existing journal, after making sure that it is the one which the journal names. A journal from
// before logs had keys gets one. A rotation that a dead process left is finished or dropped.
func OpenKeys(ctx context.Context, dir string, records Records, names Names) (*logkey.Dir, error) {
	top, err := records.Top(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := names.LogKeys(ctx)
	if err != nil {
		return nil, err
	}
	named := ""
	if len(keys) > 0 {
		named = keys[0].Key
	}
	d, err := logkey.Open(dir)
	switch {
	case errors.Is(err, logkey.ErrMissing) && named != "":
		return nil, fmt.Errorf("the log key of the journal %s is lost: there is no log.key in %s\nNothing was started, since a new key "+
			"would sign what nobody trusts. Restore the directory from its backup, or point key_dir to where it lies", top.Origin, dir)
	case errors.Is(err, logkey.ErrMissing):
		d, err = logkey.Create(dir, top.Origin)
	}
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, d, records, named); err != nil {
		return nil, err
	}
	switch key := d.Signer().Key().String(); named {
	case key:
	case "":
		if err := names.NameKey(ctx, key); err != nil {
			return nil, fmt.Errorf("name the key of the log in its journal: %w", err)
		}
	default:
		return nil, fmt.Errorf("the key in %s is not the one that the journal %s names\nNothing was started, since its signatures would not be "+
			"trusted. Restore log.key from its backup, or point key_dir to where the right one lies", dir, top.Origin)
	}
	return d, d.Tidy()
}

// VisitKeys opens the key of a journal that this process does not write. It makes none and changes nothing.
func VisitKeys(ctx context.Context, dir string, names Names) (*logkey.Dir, error) {
	keys, err := names.LogKeys(ctx)
	if err != nil {
		return nil, err
	}
	d, err := logkey.Open(dir)
	switch {
	case err != nil && len(keys) == 0:
		return nil, fmt.Errorf("%w, and the journal names none yet: start the gateway once, and both get one", err)
	case err != nil:
		return nil, fmt.Errorf("%w; nothing was signed. Restore the directory from its backup, or point key_dir to where it lies", err)
	case len(keys) == 0 || keys[0].Key != d.Signer().Key().String():
		return nil, fmt.Errorf("the key in %s is not the one that the journal names; nothing was signed. Start the gateway, which finishes a "+
			"rotation that broke off, or point key_dir to where the right key lies", dir)
	}
	return d, nil
}

// settle ends a rotation whose process died: the new key takes over if the journal names it, and is dropped if not.
func settle(ctx context.Context, d *logkey.Dir, records Records, named string) error {
	next, err := d.Next()
	if err != nil || next == nil {
		return err
	}
	if next.Key().String() != named {
		return d.Drop()
	}
	if _, err := OpenLog(ctx, Options{Records: records, Keys: d}); err != nil { // nothing is signed for a journal that was cut
		return err
	}
	_, err = handOver(ctx, d, records, next)
	return err
}

// Rotation is what came of one.
type Rotation struct {
	Old, New   journal.Key
	Checkpoint []byte // signed by both
}

// Rotate lets a new key sign from now on: the journal names it, and one checkpoint carries the signatures of both keys.
func (l *Log) Rotate(ctx context.Context, names Names) (Rotation, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Rotation{Old: l.keys.Signer().Key()}
	next, err := l.keys.Prepare()
	if err != nil {
		return r, err
	}
	// The new key stays where it is after an error: a fault may come after the record is durable, and the next start looks.
	if err := names.NameKey(ctx, next.Key().String()); err != nil {
		return r, fmt.Errorf("name the new key in the journal; the old one goes on: %w", err)
	}
	if r.Checkpoint, err = handOver(ctx, l.keys, l.records, next); err != nil {
		return r, fmt.Errorf("the journal names the new key; the next start finishes the rotation: %w", err)
	}
	r.New = next.Key()
	opened, err := journal.ReadCheckpoint(r.Checkpoint)
	if err != nil {
		return r, err
	}
	l.last = l.head(opened, r.Checkpoint)
	l.last.Time = l.now()
	return r, nil
}

func handOver(ctx context.Context, d *logkey.Dir, records Records, next *journal.Signer) ([]byte, error) {
	top, err := records.Top(ctx)
	if err != nil {
		return nil, err
	}
	signed, err := journal.SignCheckpoint(top, d.Signer(), next)
	if err != nil {
		return nil, err
	}
	return signed, d.Adopt(next, top.Size, signed)
}

// Keys are the public keys of the log, the one in use first.
func (l *Log) Keys() []journal.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys.Keys()
}
