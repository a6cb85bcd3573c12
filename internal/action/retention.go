package action

import (
	"fmt"
	"time"
)

// Purged records that the content of a final action was erased: its arguments, its request and the target's answers. The
// record of the action stays, and so do the digests by which a repeat of it is recognised.
type Purged struct {
	Kept time.Duration // how long it was kept, as the contract says
}

func (a Action) purge(ev Event) (Action, error) {
	if !a.State.Final() || a.Purged {
		return a, fmt.Errorf("the content of %s cannot be erased: it is %s, erased: %t", a.ID, a.State, a.Purged)
	}
	a.Purged, a.UpdatedAt = true, ev.Time
	return a, nil
}
