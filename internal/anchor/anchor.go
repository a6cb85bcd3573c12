package anchor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Options are the parts of an Anchor.
type Options struct {
	Log    Log
	Sinks  []Sink // none is allowed, and said in the state
	Limits Limits
	Dir    string // where it remembers what the places hold; "" remembers nothing
	Logger *slog.Logger
	Now    func() time.Time
}

// Anchor brings checkpoints to places. Make one with New, call Check before anything is sent, then Run until the end.
type Anchor struct {
	log    Log
	limits Limits
	dir    string
	logger *slog.Logger
	now    func() time.Time

	saving sync.Mutex // one writer of the memory

	mu       sync.Mutex
	sinks    []*sink
	conflict error     // a place holds what the journal does not continue: nothing new is sent from then on
	caught   time.Time // until then everything was anchored, as far as is known
	failed   error     // of the last attempt to cut a checkpoint
	cosigned cosigned
	saved    time.Time
}

// sink is what is known of one place.
type sink struct {
	Sink
	known   bool      // size is what the place holds, by its own word or by memory
	checked bool      // the place was asked since the start
	busy    bool      // a call to it is under way
	size    uint64    // of the newest checkpoint that it holds
	signed  []byte    // that checkpoint
	cut     time.Time // when that checkpoint was cut
	kept    time.Time // when it was brought there
	failed  error     // of the last attempt; nil when that went well
	since   time.Time // of the first of the failures in a row
	tries   int       // failures in a row
	due     time.Time // not before then, after a failure
}

const (
	cadence    = time.Second      // how often anything is looked at
	batch      = 1000             // so many records are brought at once, without waiting
	patience   = 20 * time.Second // for one call to a place
	greeting   = 10 * time.Second // for all places, at the start
	farewell   = 5 * time.Second  // for all places, at the end
	longest    = time.Minute      // between two attempts
	remembered = 10 * time.Second // between two writes of the memory
)

// New makes an Anchor. It reads what the last process remembered, and asks nobody.
func New(o Options) *Anchor {
	a := &Anchor{log: o.Log, limits: o.Limits.orDefault(), dir: o.Dir, logger: o.Logger, now: o.Now}
	for _, s := range o.Sinks {
		if s.Every < cadence {
			s.Every = cadence
		}
		a.sinks = append(a.sinks, &sink{Sink: s})
	}
	a.recall()
	return a
}

// Check asks every place whether the journal continues what it holds, and brings it there. An error means that deed must not
// start: a new checkpoint would hide that records are gone. A place that cannot be reached is no error; it is asked as soon
// as it can be.
func (a *Anchor) Check(ctx context.Context) error {
	if len(a.sinks) == 0 {
		a.logger.Warn("checkpoints of the journal are kept nowhere outside: whoever has the key and the store can rewrite it unseen")
		return nil
	}
	head, err := a.log.Head(ctx)
	if err != nil {
		return fmt.Errorf("cut a checkpoint: %w", err)
	}
	if err := a.checkMemory(ctx, head); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	a.bringAll(ctx, head)
	a.save()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conflict
}

// Run brings what is new to the places until ctx ends, and then once more.
func (a *Anchor) Run(ctx context.Context) {
	if len(a.sinks) == 0 {
		return
	}
	var calls sync.WaitGroup
	under, stop := context.WithCancel(context.WithoutCancel(ctx)) // what is under way is finished
	defer stop()
	ticks := time.NewTicker(cadence / 10)
	defer ticks.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticks.C:
			a.round(under, &calls)
		case <-ctx.Done():
		}
	}
	enough := time.AfterFunc(farewell, stop)
	calls.Wait()
	enough.Stop()
	a.last(context.WithoutCancel(ctx))
}

// round starts a call to every place whose time has come.
func (a *Anchor) round(ctx context.Context, calls *sync.WaitGroup) {
	due := a.claim()
	if len(due) == 0 {
		return
	}
	head, err := a.cut(ctx)
	if err != nil {
		a.release(due)
		return
	}
	for _, s := range due {
		calls.Go(func() {
			call, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			a.bring(call, s, head)
			a.saveNowAndThen()
		})
	}
}

// claim marks the places whose time has come as busy and returns them.
func (a *Anchor) claim() (due []*sink) {
	now, size := a.now(), uint64(a.log.Size())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.observe(now)
	for _, s := range a.sinks {
		waits := s.checked && size < s.size+batch && now.Before(s.kept.Add(s.Every))
		if s.busy || now.Before(s.due) || waits || s.checked && s.size == size {
			continue
		}
		s.busy = true
		due = append(due, s)
	}
	return due
}

func (a *Anchor) release(list []*sink) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range list {
		s.busy = false
		s.due = a.now().Add(cadence)
	}
}

// cut makes a head, and says once that it cannot.
func (a *Anchor) cut(ctx context.Context) (Head, error) {
	head, err := a.log.Head(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && a.failed == nil && ctx.Err() == nil {
		a.logger.Error("no checkpoint can be cut, so nothing is anchored", "error", err)
	}
	a.failed = err
	return head, err
}

// last brings the end of the journal to all places, as far as they take it in time.
func (a *Anchor) last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	size := uint64(a.log.Size())
	behind := false
	for _, s := range a.sinks {
		behind = behind || s.size < size
	}
	if behind {
		if head, err := a.cut(ctx); err == nil {
			a.bringAll(ctx, head)
		}
	}
	a.save()
}

func (a *Anchor) bringAll(ctx context.Context, head Head) {
	var calls sync.WaitGroup
	for _, s := range a.sinks {
		calls.Go(func() { a.bring(ctx, s, head) })
	}
	calls.Wait()
}

// bring takes a head to one place: first it is asked what it holds, once since the start.
func (a *Anchor) bring(ctx context.Context, s *sink, head Head) {
	var lines []byte
	var err error
	if !s.checked { // only this call touches it
		err = s.Place.Check(ctx, head)
	}
	if err == nil {
		lines, err = s.Place.Keep(ctx, head)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.busy = false
	now := a.now()
	if err != nil {
		a.fail(s, now, err)
		return
	}
	if s.failed != nil {
		a.logger.Info("a place takes checkpoints again", "place", s.Place.Name(), "size", head.Size)
	}
	s.failed, s.tries, s.since, s.due = nil, 0, time.Time{}, time.Time{}
	s.checked, s.known = true, true
	s.size, s.signed, s.cut, s.kept = head.Size, head.Signed, head.Time, now
	a.cosigned.add(s.Place.Name(), head, lines)
	a.advance(now)
}

// fail notes that a place could not take a head. A conflict is for good.
func (a *Anchor) fail(s *sink, now time.Time, err error) {
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		if !errors.As(s.failed, &conflict) {
			a.logger.Error("the journal is not what a place has seen before; nothing new is sent", "place", s.Place.Name(), "error", err)
			a.conflict = errors.Join(a.conflict, err)
			s.since = now
		}
		s.failed, s.due = err, now.Add(longest)
		return
	}
	if s.failed == nil {
		s.since = now
		a.logger.Warn("a place does not take checkpoints", "place", s.Place.Name(), "error", err)
	}
	s.failed = err
	s.due = now.Add(min(cadence<<min(s.tries, 10), longest))
	s.tries++
}
