package logkey

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"deed.dev/deed/internal/atomicfile"
	"deed.dev/deed/journal"
)

// Next gives the key of a rotation that is under way, nil when none is.
func (d *Dir) Next() (*journal.Signer, error) {
	next, err := d.private("log.key.next")
	if errors.Is(err, ErrMissing) {
		return nil, nil
	}
	return next, err
}

// Prepare makes the key that shall take over. The journal has to name it before Adopt.
func (d *Dir) Prepare() (*journal.Signer, error) {
	return d.make("log.key.next", d.signer.Origin())
}

// Drop forgets a key that the journal has not named.
func (d *Dir) Drop() error {
	if err := os.Remove(d.file("log.key.next")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("drop the key of a rotation that did not take place: %w", err)
	}
	return nil
}

// Adopt lets the prepared key take over. handover is the checkpoint of that size that both keys have signed. The private key
// that it replaces is gone afterwards, and its public key is kept. A process that dies in between is finished by calling it
// again.
func (d *Dir) Adopt(next *journal.Signer, size uint64, handover []byte) error {
	if err := atomicfile.Write(d.file(fmt.Sprintf("handover-%d.checkpoint", size)), handover); err != nil {
		return fmt.Errorf("keep the checkpoint that hands over: %w", err)
	}
	if err := d.Remember(handover); err != nil {
		return err
	}
	old := d.Keys()
	var lines strings.Builder
	for _, key := range old {
		fmt.Fprintln(&lines, key)
	}
	if err := atomicfile.Write(d.file("old.pub"), []byte(lines.String())); err != nil {
		return fmt.Errorf("keep the old public key: %w", err)
	}
	if err := os.Rename(d.file("log.key.next"), d.file("log.key")); err != nil {
		return fmt.Errorf("let the new key take over: %w", err)
	}
	d.signer, d.old = next, old
	return d.publish()
}

// Remember keeps the newest checkpoint that was signed, durably.
func (d *Dir) Remember(signed []byte) error {
	if err := atomicfile.Write(d.file("log.checkpoint"), signed); err != nil {
		return fmt.Errorf("remember the newest checkpoint: %w", err)
	}
	return nil
}

// Remembered gives the newest checkpoint that was signed, nil when there is none. The error is that it cannot be read, or is
// not the log's.
func (d *Dir) Remembered() (signed []byte, opened journal.Opened, err error) {
	signed, err = readFile(d.file("log.checkpoint"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, opened, nil
	}
	if err != nil {
		return nil, opened, fmt.Errorf("read the newest checkpoint: %w", err)
	}
	known := d.Keys()
	if next, err := d.Next(); err == nil && next != nil {
		known = append(known, next.Key())
	}
	if opened, err = journal.TrustLogs(known...).Open(signed); err != nil {
		return nil, opened, fmt.Errorf("%s: %w", d.file("log.checkpoint"), err)
	}
	return signed, opened, nil
}

// Tidy makes the public files agree with the private key, after a process that died while it changed them.
func (d *Dir) Tidy() error { return d.publish() }
