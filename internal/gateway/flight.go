package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
)

// A flight is the work on one action in this process. There is at most one for an action: whoever comes while it runs
// waits for it, so that two calls never send the same thing side by side.
type flight struct {
	id      action.ID
	done    chan struct{}
	action  action.Action // as the work left it; read after done
	written *written      // what the work wrote last, so that those who wait need not read it; read after done
	waiting int           // callers that still wait

	stranger bool // its caller shares a token with others and said nothing of itself

	wanted context.Context // ends when every caller has left: what is not on its way yet then stays where it is
	stop   context.CancelCauseFunc
}

func newFlight(id action.ID) *flight {
	f := &flight{id: id, done: make(chan struct{})}
	f.wanted, f.stop = context.WithCancelCause(context.Background())
	return f
}

type flights struct {
	mu      sync.Mutex
	running map[action.ID]*flight
	last    time.Time // when a call made an action
}

// reserve registers a flight before its action becomes visible to others, so that nobody takes the action for abandoned.
// Its maker counts as the first who waits.
func (s *flights) reserve(id action.ID) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := newFlight(id)
	f.waiting, s.last = 1, time.Now()
	s.running[id] = f
	return f
}

// take starts a flight for a decision about an action, unless one runs.
func (s *flights) take(id action.ID) (f *flight, free bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, runs := s.running[id]; runs {
		return nil, false
	}
	f = newFlight(id)
	s.running[id] = f
	return f, true
}

// join waits with the flight of an action, starting one if none runs.
func (s *flights) join(id action.ID, start func(*flight)) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.running[id]
	if ok && f.wanted.Err() != nil { // those who left took their wish with them; here is another
		f.wanted, f.stop = context.WithCancelCause(context.Background())
	}
	if !ok {
		f = newFlight(id)
		s.running[id] = f
		start(f)
	}
	f.waiting++
	return f
}

// leave ends one caller's waiting. A caller that has gone, and was the last one, takes its wish with it: cause says why it
// went, nil that it has its answer.
func (s *flights) leave(f *flight, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting--; f.waiting == 0 && cause != nil {
		f.stop(cause)
	}
}

// want ends when every caller of the flight has left.
func (s *flights) want(f *flight) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.wanted.Done()
}

// left says why the last caller of a flight went away, nil while somebody waits or had an answer.
func (s *flights) left(f *flight) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting > 0 {
		return nil
	}
	return context.Cause(f.wanted)
}

// has reports whether an action is being worked on.
func (s *flights) has(id action.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.running[id]
	return ok
}

// busy reports whether anything is under way.
func (s *flights) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) > 0
}

// called reports whether a caller waits for any of them, or has made a call just now: callers that are answered together
// come back together.
func (s *flights) called(within time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.last) < within {
		return true
	}
	for _, f := range s.running {
		if f.waiting > 0 {
			return true
		}
	}
	return false
}

// land ends a flight and wakes everybody who waits for it.
func (s *flights) land(f *flight, a action.Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, f.id)
	f.action = a
	f.stop(nil)
	close(f.done)
}

// fly works on an action apart from whoever asked for it: a caller's leaving ends the waiting, never the work. planned is
// what stands in the journal already as the next step, if anything.
func (g *Gateway) fly(f *flight, act action.Action, planned plan) {
	g.work.Go(func() {
		act := g.perform(f, act, planned)
		left := g.flights.left(f)
		switch {
		case act.State != action.Authorized:
		case errors.Is(left, ErrCancelled):
			act = g.withdraw(act, action.Cancelled, "cancel_requested")
		case f.stranger: // nobody could ever carry it on: an equal call is not known to be the same caller's
			act = g.withdraw(act, action.Expired, act.Reason)
		}
		if g.flights.land(f, act); left != nil && act.Delivery == action.DeliveryPending {
			g.Delivered(act.ID, action.DeliveryInterrupted, "caller_left")
		}
	})
}
