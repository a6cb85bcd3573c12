package sqlite

import (
	"context"
	"errors"
	"fmt"

	"deed.dev/deed/internal/store"
)

// background is the context of every statement of the committer: a commit under way is never cancelled.
var background = context.Background()

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, change func(store.Tx) error) error {
	return s.wait(ctx, &job{change: change, done: make(chan struct{})})
}

func (s *Store) wait(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.queue.put(j); err != nil {
		return err
	}
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		if j.withdraw() {
			return ctx.Err()
		}
		<-j.done // it is under way: half an answer would leave a record that nobody knows of
		return j.err
	}
}

// Later implements store.Store.
func (s *Store) Later(change func(store.Tx) error) error {
	return s.queue.put(&job{change: change})
}

// commitUntilClosed is the committer.
func (s *Store) commitUntilClosed() {
	defer close(s.done)
	// A change may end its goroutine, as t.FailNow does. That must not leave others waiting for ever.
	cause := errors.New("a change ended the committer")
	var batch []*job
	defer func() {
		if cause != nil {
			s.latch(cause, batch)
		}
	}()
	for {
		if batch = s.queue.next(); len(batch) == 0 {
			cause = nil
			return
		}
		if err := s.commit(batch); err != nil {
			cause = err
			return
		}
	}
}

// latch ends all writing, and tells those who wait.
func (s *Store) latch(cause error, batch []*job) {
	err := fmt.Errorf("%w: %w", store.ErrLatched, explain(s.write.path, cause))
	s.log.Error("the journal is latched: nothing is written until deed is started again", "error", err)
	for _, j := range append(batch, s.queue.latch(err)...) {
		j.take()
		j.finish(err)
	}
}

// commit runs the batch in one transaction. An error latches the store; those of single changes are in their jobs.
func (s *Store) commit(batch []*job) error {
	w := s.write
	if _, err := w.begin.ExecContext(background); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	errs := make([]error, len(batch))
	for i, j := range batch {
		if !j.take() {
			continue
		}
		var fatal error
		if errs[i], fatal = w.run(j); fatal != nil {
			w.abandon()
			return fatal
		}
	}
	if err := w.finish(); err != nil {
		w.abandon()
		return err
	}
	if s.committed != nil {
		s.committed(s.Size())
	}
	for i, j := range batch {
		if j.state.Load() == jobWithdrawn {
			continue
		}
		if errs[i] != nil && j.done == nil {
			s.log.Warn("a change that nobody waits for was dropped", "error", errs[i])
		}
		j.finish(errs[i])
	}
	return nil
}
