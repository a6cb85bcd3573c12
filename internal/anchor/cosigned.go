package anchor

import (
	"bytes"
	"slices"
)

// cosigned collects what witnesses have signed of the newest heads. Fast witnesses are ahead of slow ones, so it keeps a few.
type cosigned struct{ heads []cosignedHead }

type cosignedHead struct {
	size   uint64
	signed []byte
	lines  map[string][]byte // by place
}

const headsKept = 16

func (c *cosigned) add(place string, head Head, lines []byte) {
	if len(lines) == 0 {
		return
	}
	for _, h := range c.heads {
		if bytes.Equal(h.signed, head.Signed) {
			h.lines[place] = lines
			return
		}
	}
	c.heads = append(c.heads, cosignedHead{head.Size, head.Signed, map[string][]byte{place: lines}})
	slices.SortStableFunc(c.heads, func(a, b cosignedHead) int { return int(int64(b.size) - int64(a.size)) })
	c.heads = c.heads[:min(len(c.heads), headsKept)]
}

// best is the newest of those that the most witnesses have signed.
func (c *cosigned) best() []byte {
	var best cosignedHead
	for _, h := range c.heads {
		if len(h.lines) > len(best.lines) {
			best = h
		}
	}
	signed := bytes.Clone(best.signed)
	var places []string
	for place := range best.lines {
		places = append(places, place)
	}
	slices.Sort(places)
	for _, place := range places {
		signed = append(signed, best.lines[place]...)
	}
	return signed
}

// Cosigned returns the newest checkpoint that the most witnesses have signed, with their signatures; nil when there is none
// since the start.
func (a *Anchor) Cosigned() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cosigned.best()
}
