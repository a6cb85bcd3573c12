package anchortest

import (
	"context"
	"sync"
	"time"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/journal"
)

// Shelf is a place in memory, which can be made to fail or to take its time. It obeys the contract of a place.
type Shelf struct {
	Title string

	mu    sync.Mutex
	held  []journal.Checkpoint
	err   error
	stall chan struct{}
	takes time.Duration
	lines []byte
}

// Name is its title.
func (s *Shelf) Name() string { return s.Title }

// Fail makes every call fail from now on; nil makes it work again.
func (s *Shelf) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Stall makes calls wait until the channel is closed.
func (s *Shelf) Stall(until chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stall = until
}

// Take makes every call take that long.
func (s *Shelf) Take(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = d
}

// Sign makes it return these lines, as a witness does.
func (s *Shelf) Sign(lines string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = []byte(lines)
}

// Held lists the sizes that it holds, oldest first.
func (s *Shelf) Held() (sizes []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.held {
		sizes = append(sizes, c.Size)
	}
	return sizes
}

func (s *Shelf) wait(ctx context.Context) error {
	s.mu.Lock()
	stall, takes, err := s.stall, s.takes, s.err
	s.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if stall != nil {
		select {
		case <-stall:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// Check compares the head with the newest checkpoint.
func (s *Shelf) Check(ctx context.Context, head anchor.Head) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) == 0 {
		return nil
	}
	return anchor.Continues(ctx, s.Title, s.held[len(s.held)-1], head)
}

// Keep puts the head on the shelf.
func (s *Shelf) Keep(ctx context.Context, head anchor.Head) ([]byte, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.held); n == 0 || s.held[n-1] != head.Checkpoint {
		s.held = append(s.held, head.Checkpoint)
	}
	return s.lines, nil
}
