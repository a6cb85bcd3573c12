package anchor

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits bound what only the gateway has: so many records, for so long. Beyond either, nothing new is sent.
type Limits struct {
	Records int64         // 10,000 if not said
	Age     time.Duration // 15 minutes if not said
	Need    int           // how many places must hold a record for it to be anchored; 1 if not said
}

func (l Limits) orDefault() Limits {
	if l.Records <= 0 {
		l.Records = 10_000
	}
	if l.Age <= 0 {
		l.Age = 15 * time.Minute
	}
	if l.Need <= 0 {
		l.Need = 1
	}
	return l
}

// Unanchored is what only the gateway has.
type Unanchored struct {
	Records int64
	Age     time.Duration // of the oldest of them, at most
	Known   bool          // false: too few places have answered, and nothing is remembered of them
}

// Unanchored says how much only the gateway has. Without any place it is the whole journal.
func (a *Anchor) Unanchored() Unanchored {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unanchored()
}

func (a *Anchor) unanchored() Unanchored {
	now := a.now()
	size, known := a.observe(now)
	u := Unanchored{Records: max(0, a.log.Size()-int64(size)), Known: known}
	if u.Records > 0 && !a.caught.IsZero() {
		u.Age = max(0, now.Sub(a.caught))
	}
	return u
}

// anchored is the size that enough places hold.
func (a *Anchor) anchored() (size uint64, known bool) {
	var sizes []uint64
	for _, s := range a.sinks {
		if s.known {
			sizes = append(sizes, s.size)
		}
	}
	if len(sizes) < a.limits.Need {
		return 0, false
	}
	slices.Sort(sizes)
	return sizes[len(sizes)-a.limits.Need], true
}

// observe notes the time while there is nothing that only the gateway has, so that the first record after it counts from
// then.
func (a *Anchor) observe(now time.Time) (size uint64, known bool) {
	if size, known = a.anchored(); known && int64(size) >= a.log.Size() {
		a.caught = now
	}
	return size, known
}

// advance notes when what is anchored now was cut: every record after it is younger.
func (a *Anchor) advance(now time.Time) {
	size, known := a.observe(now)
	if !known {
		return
	}
	for _, s := range a.sinks {
		if s.known && s.size == size && s.cut.After(a.caught) {
			a.caught = s.cut
		}
	}
}

// Open says whether something new may be sent: nil, or why not. It does not wait. Without any place it is always open.
func (a *Anchor) Open() error {
	if len(a.sinks) == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed()
}

var errNobody = errors.New("no place for checkpoints has answered since the start, and nothing is remembered of what they hold")

func (a *Anchor) closed() error {
	if a.conflict != nil {
		return a.conflict
	}
	u := a.unanchored()
	switch {
	case !u.Known:
		return errNobody
	case u.Records >= a.limits.Records:
		return fmt.Errorf("%d records of the journal are kept nowhere outside, and %d is the limit", u.Records, a.limits.Records)
	case u.Records > 0 && u.Age >= a.limits.Age:
		return fmt.Errorf("a record of the journal is kept nowhere outside since %s, and %s is the limit", u.Age.Round(time.Second), a.limits.Age)
	}
	return nil
}
