package main

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"deed.dev/deed/internal/audit"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store/sqlite"
)

// journalDesk keeps checkpoints of a journal while it is written, and hands it out. The zero value is closed.
type journalDesk struct {
	log   atomic.Pointer[audit.Log] // commits come before there is one
	parts audit.Desk
	stop  context.CancelFunc
	done  sync.WaitGroup
	warn  *slog.Logger
}

// open holds the journal against its key and its newest checkpoint, and begins to keep new ones.
func (j *journalDesk) open(ctx context.Context, keyDir string, s *sqlite.Store, log *slog.Logger) error {
	keys, err := audit.OpenKeys(ctx, keyDir, s, s)
	if err != nil {
		return err
	}
	l, err := audit.OpenLog(ctx, audit.Options{Records: s, Keys: keys, Log: log})
	if err != nil {
		return err
	}
	if _, err := l.Keep(ctx); err != nil {
		return err
	}
	j.parts, j.warn = audit.Desk{Log: l, Records: s, Events: s, Names: s}, log
	j.log.Store(l)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	j.stop = stop
	j.done.Go(func() { l.Run(running) })
	return nil
}

func (j *journalDesk) grown() {
	if l := j.log.Load(); l != nil {
		l.Grown()
	}
}

// desk is what the operator's door hands out.
func (j *journalDesk) desk() operator.Journal { return j.parts }

// close keeps the last checkpoint. It comes after the last record, and before the store is closed.
func (j *journalDesk) close() {
	l := j.log.Swap(nil)
	if l == nil {
		return
	}
	j.stop()
	j.done.Wait()
	if _, err := l.Keep(context.Background()); err != nil {
		j.warn.Error("the last checkpoint of the journal could not be kept", "error", err)
	}
}
