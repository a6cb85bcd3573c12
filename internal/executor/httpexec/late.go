package httpexec

import (
	"context"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
)

const (
	// lateFor is how long an answer is waited for where Options say nothing.
	lateFor = 2 * time.Minute
	// maxLate bounds the answers that are waited for at a time. Each holds a connection and a part of an answer.
	maxLate = 256
)

// inTime waits for the exchange within the attempt's own time. When that is over, it gives the outcome as it stands; and
// where the target may have the whole request and the answer still come, it leaves the exchange open.
func (s *sending) inTime(ctx, caller context.Context) (action.Outcome, *openEnd) {
	wire, cut := context.WithCancel(caller)
	before := s.link.meter.count()
	done := make(chan exchanged, 1)
	go func() { done <- s.exchange(wire) }()
	select {
	case got := <-done:
		cut()
		return s.finish(ctx, got), nil
	case <-ctx.Done():
	}
	if out, open := s.giveUp(ctx, before); open {
		return out, &openEnd{s, cut, done}
	}
	cut()
	return s.finish(ctx, <-done), nil
}

// giveUp is the outcome of an attempt whose time is over. open says that the exchange goes on: the whole request is out,
// nothing is proved, and a late reader is free.
func (s *sending) giveUp(ctx context.Context, before int64) (out action.Outcome, open bool) {
	got, whole := s.seen.soFar(maxResult(s.dispatch.Operation), ctx.Err())
	got.sent = s.link.meter.soFar() - before
	if !whole || got.sent == 0 {
		return out, false
	}
	out = s.conclude(ctx, got)
	return out, out.State == action.AttemptTimeout && s.executor.late.enter()
}

// openEnd is an exchange that outlives its attempt.
type openEnd struct {
	*sending
	cut  context.CancelFunc
	done <-chan exchanged
}

// await reads on, for a bounded time, and hands over the answer if it comes whole. Nothing is sent, and the connection is
// not used again.
func (o *openEnd) await(caller context.Context, started time.Time) {
	e := o.executor
	defer e.late.leave()
	timer := time.NewTimer(e.late.reads)
	defer timer.Stop()
	var got exchanged
	select {
	case got = <-o.done:
		o.cut()
		o.link.drop()
	case <-timer.C:
		o.end()
		return
	case <-caller.Done():
		o.end()
		return
	case <-e.late.over:
		o.end()
		return
	}
	if got.resp == nil || got.err != nil || caller.Err() != nil || e.late.isOver() {
		return
	}
	out := o.conclude(caller, got)
	out.Started, out.Ended = started, e.now()
	o.dispatch.Late(out)
}

// end breaks the exchange off. The connection goes first, so that not even a good-bye is sent or waited for.
func (o *openEnd) end() {
	o.link.drop()
	o.cut()
	<-o.done
}

// lateReaders counts the exchanges that outlive their attempts, and ends them.
type lateReaders struct {
	reads time.Duration // how long each reads on
	over  chan struct{} // closed by close

	mu      sync.Mutex
	free    int
	running sync.WaitGroup
}

func newLateReaders(reads time.Duration) *lateReaders {
	if reads == 0 {
		reads = lateFor
	}
	return &lateReaders{reads: reads, over: make(chan struct{}), free: maxLate}
}

// enter takes a place, and reports whether there was one. Who gets one leaves it.
func (r *lateReaders) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.free <= 0 || r.isOver() {
		return false
	}
	r.free--
	r.running.Add(1)
	return true
}

func (r *lateReaders) leave() {
	r.mu.Lock()
	r.free++
	r.mu.Unlock()
	r.running.Done()
}

func (r *lateReaders) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// close ends every late reader and waits for them. It may be called again.
func (r *lateReaders) close() {
	r.mu.Lock()
	if !r.isOver() {
		close(r.over)
	}
	r.mu.Unlock()
	r.running.Wait()
}
