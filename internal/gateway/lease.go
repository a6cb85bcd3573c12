package gateway

import (
	"sync"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// lease is this gateway's proof that it lives. Others leave its actions alone while it holds; when it is over they take
// them up, under a new fencing number, and nothing that this gateway then says or does about them counts any more.
type lease struct {
	owner action.OwnerID
	life  time.Duration

	mu    sync.Mutex
	until time.Time // by this process's own clock, which no one sets back
	kept  bool      // somebody renews it
	lapse int       // how often it was over before it was renewed: what was planned before that is not ours any more
}

// defaultLease outlasts a slow disk and a short pause. A takeover waits as long.
const defaultLease = 15 * time.Second

// live makes sure that the lease is on record before the change that comes after this call, at no commit of its own.
func (g *Gateway) live() {
	g.lease.mu.Lock()
	fresh := time.Until(g.lease.until) > g.lease.life/2
	start := !g.lease.kept
	g.lease.kept = true
	g.lease.mu.Unlock()
	if start {
		go g.keepAlive()
	}
	if !fresh {
		g.later(g.renew)
	}
}

// renew extends the lease inside a change. It counts from before the commit, so that the record never promises less.
func (g *Gateway) renew(tx store.Tx) error {
	now := time.Now()
	if err := tx.Lease(g.lease.owner, g.lease.life); err != nil {
		return err
	}
	g.lease.mu.Lock()
	defer g.lease.mu.Unlock()
	if now.After(g.lease.until) {
		g.lease.lapse++
	}
	g.lease.until = now.Add(g.lease.life)
	return nil
}

// lapses counts the times that the lease was over before it was renewed.
func (g *Gateway) lapses() int {
	g.lease.mu.Lock()
	defer g.lease.mu.Unlock()
	return g.lease.lapse
}

// holds reports whether the lease has certainly stood without a break since something was planned. After a pause of the
// whole process it may not, even if it has been renewed since: somebody may have taken the action over in between.
func (g *Gateway) holds(since int) bool {
	g.lease.mu.Lock()
	defer g.lease.mu.Unlock()
	return g.lease.lapse == since && time.Until(g.lease.until) > g.lease.life/10
}

// keepAlive renews the lease while there is work.
func (g *Gateway) keepAlive() {
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-time.After(g.lease.life / 4):
		}
		if g.flights.busy() {
			if err := g.mustCommit(g.renew); err != nil && g.ctx.Err() == nil {
				g.log.Warn("the lease could not be renewed", "error", err)
			}
		}
	}
}

// others reports whether another gateway that lives works on the action.
func (g *Gateway) others(tx store.Tx, act action.Action) (bool, error) {
	if act.Owner == "" || act.Owner == g.lease.owner {
		return false, nil
	}
	return tx.Alive(act.Owner)
}
