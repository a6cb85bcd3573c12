package sqlite

import (
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"deed.dev/deed/internal/store"
)

const (
	// batchLimit bounds one transaction: with it the time that the first in line waits for the last.
	batchLimit = 512
	// laterDelay is how long a change without a waiter may look for company, so that it costs no sync of its own.
	laterDelay = 50 * time.Millisecond
)

// job is one change in the queue.
type job struct {
	change func(store.Tx) error
	apart  bool          // it wants a transaction of its own
	done   chan struct{} // nil when nobody waits
	err    error         // read after done
	state  atomic.Int32
}

// A job is taken by the committer or withdrawn by its caller, never both.
const (
	jobWaiting int32 = iota
	jobTaken
	jobWithdrawn
)

func (j *job) take() bool     { return j.state.CompareAndSwap(jobWaiting, jobTaken) }
func (j *job) withdraw() bool { return j.state.CompareAndSwap(jobWaiting, jobWithdrawn) }

func (j *job) finish(err error) {
	j.err = err
	if j.done != nil {
		close(j.done)
	}
}

// queue holds the changes that wait, first come first served.
type queue struct {
	limit int

	mu      sync.Mutex
	ready   *sync.Cond
	jobs    []*job
	waited  int  // how many of the jobs somebody waits for
	due     bool // the others have waited long enough
	timer   *time.Timer
	refused error // why nothing is taken any more
}

var errClosed = fmt.Errorf("the store: %w", fs.ErrClosed)

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.ready = sync.NewCond(&q.mu)
	return q
}

// put adds a job, or refuses it at once.
func (q *queue) put(j *job) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.refused != nil:
		return q.refused
	case len(q.jobs) >= q.limit:
		return store.ErrFull
	case j.done == nil && len(q.jobs)-q.waited >= q.limit/2: // evidence must not crowd out what callers wait for
		return store.ErrFull
	}
	q.jobs = append(q.jobs, j)
	if j.done != nil {
		q.waited++
	} else if q.timer == nil {
		q.timer = time.AfterFunc(laterDelay, q.hurry)
	}
	q.ready.Signal()
	return nil
}

func (q *queue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due, q.timer = true, nil
	q.ready.Signal()
}

// next waits for work and takes all of it, up to the limit of a batch. It gives nothing once the queue is closed and empty.
func (q *queue) next() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.waited == 0 && q.refused == nil && (len(q.jobs) == 0 || !q.due && len(q.jobs) < q.limit/2) {
		q.ready.Wait()
	}
	n := q.batch()
	batch := make([]*job, n)
	copy(batch, q.jobs)
	rest := copy(q.jobs, q.jobs[n:])
	clear(q.jobs[rest:])
	q.jobs = q.jobs[:rest]
	for _, j := range batch {
		if j.done != nil {
			q.waited--
		}
	}
	if rest == 0 {
		q.due = false
	}
	return batch
}

// batch is how many jobs go into the next transaction.
func (q *queue) batch() int {
	n := min(len(q.jobs), batchLimit)
	for i, j := range q.jobs[:n] {
		if j.apart {
			return max(i, 1)
		}
	}
	return n
}

// close refuses what comes from now on; what waits is still done.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refused == nil {
		q.refused = errClosed
	}
	q.ready.Signal()
}

// latch refuses what comes and gives back what waits.
func (q *queue) latch(err error) (waiting []*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refused = err
	waiting, q.jobs, q.waited = q.jobs, nil, 0
	q.ready.Signal()
	return waiting
}
