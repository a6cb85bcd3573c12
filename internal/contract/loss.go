package contract

import (
	"fmt"
	"net/textproto"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

const (
	defaultReview = time.Hour
	mostReview    = 30 * day
)

// loss reads what may be done after the response was lost. The method plays no part in it: a PUT may notify people, and a
// POST may be safe.
func (f *faults) loss(c *Contract, raw file) {
	l := raw.OnLost
	const at = "/on_lost_response"
	c.Class = action.Class(l.Class)
	c.HasEffects = c.Class != action.ReadOnly
	c.Evidence, c.KeyOnly = l.Evidence, l.Match == "key_only"
	c.Scope = ScopeRun
	if l.Scope != "" {
		c.Scope = Scope(l.Scope)
	}
	if c.Class == "" {
		return // said already
	}
	if strings.TrimSpace(l.Evidence) == "" && c.Class != action.BlockedAfterUnknown {
		f.addAt(f.places.key(at), at+"/evidence", "is missing",
			fmt.Sprintf("say why %s is true: the target's documentation and when it was read", c.Class))
	}
	f.key(c, l)
	f.windows(c, raw)
	c.ReviewAfter = f.duration(at+"/review_after", l.ReviewAfter, defaultReview, time.Second, mostReview)
	if c.Class == action.StatusQueryable && raw.Lookup == nil && !f.any("/lookup") {
		f.add(at+"/class", "status_queryable needs a way to ask the target", "add lookup, or choose blocked_after_unknown")
	}
}

// key reads where the key goes and what the target does when it comes again.
func (f *faults) key(c *Contract, l lostPart) {
	const at = "/on_lost_response/key"
	if l.Key == nil {
		if c.Class == action.RepeatableWithKey && !f.any(at) {
			f.addAt(f.places.key("/on_lost_response"), at, "is missing",
				"say where the key goes, what the target does when it comes again and how long it is kept")
		}
		return
	}
	k := l.Key
	if c.Class == action.ReadOnly {
		f.addAt(f.places.key(at), at, "a read needs no key", "leave it out")
		return
	}
	c.Key = Key{Header: textproto.CanonicalMIMEHeaderKey(k.Header), JSON: k.JSON, Form: k.Form, Repeat: Repeat(k.Repeat)}
	given := 0
	for _, place := range []string{k.Header, k.JSON, k.Form} {
		if place != "" {
			given++
		}
	}
	if given != 1 && !f.any(at) {
		f.addAt(f.places.key(at), at, "the key goes to exactly one place", "write header, json or form")
	}
	why, taken := reserved[c.Key.Header]
	switch name := c.Key.Header; {
	case name == "":
	case !fieldName.MatchString(k.Header):
		f.add(at+"/header", "this is no name of a header field", "use letters, digits and -")
	case taken && name != "Idempotency-Key" && name != "X-Idempotency-Key", name == "Content-Type":
		f.add(at+"/header", "this field is reserved", why)
	}
	if c.Class != action.RepeatableWithKey {
		return
	}
	if r := c.Key.Repeat; r == RepeatUnspecified || r == RepeatIgnored {
		f.add(at+"/repeat", fmt.Sprintf("with %q a resend proves nothing and may do everything twice", r),
			"choose status_queryable or blocked_after_unknown")
	}
	if k.KeptFor == "" && !f.any(at+"/kept_for") {
		f.addAt(f.places.key(at), at+"/kept_for", "is missing", "say how long the target keeps a key, such as 24h")
	}
}

// keyLife reckons how long a resend may start. The last one has to end, on the target's clock, before the key does.
func (f *faults) keyLife(c *Contract, raw file) {
	const at = "/on_lost_response"
	least := c.Timeout + clockSkew
	c.Key.Margin = f.duration(at+"/margin", raw.OnLost.Margin, least, least, longest)
	c.Key.KeptFor = f.duration(at+"/key/kept_for", raw.OnLost.Key.KeptFor, 0, time.Second, longest)
	if c.Key.KeptFor == 0 {
		return // said already
	}
	c.KeyLife = c.Key.KeptFor - c.Key.Margin
	if c.KeyLife <= 0 {
		f.add(at+"/key/kept_for", fmt.Sprintf("the target keeps a key for %s, and %s of that are the margin",
			formatDuration(c.Key.KeptFor), formatDuration(c.Key.Margin)), "choose another class: there is no time for a resend")
	}
}

// windows reads how long equal calls attach and how long the result is kept. A class with effects has to say both: what
// fits an API call does not fit a deployment of an hour.
func (f *faults) windows(c *Contract, raw file) {
	const attach = "/on_lost_response/attach_for"
	c.AttachFor = f.duration(attach, raw.OnLost.AttachFor, 0, 0, longest)
	if c.HasEffects && raw.OnLost.AttachFor == "" && !f.any(attach) {
		f.addAt(f.places.key("/on_lost_response"), attach, "is missing",
			"say how long after the end an equal call still belongs to this action, such as 15m")
	}
	standard := max(keepReads, 2*c.AttachFor)
	c.KeepResult = f.duration("/keep_result", raw.KeepResult, standard, time.Second, longest)
	switch {
	case c.HasEffects && raw.KeepResult == "" && !f.any("/keep_result"):
		f.addAt(f.places.key("/on_lost_response"), "/keep_result", "is missing", "say how long the result is kept, such as 30d")
	case raw.KeepResult != "" && c.KeepResult <= c.AttachFor && !f.any("/keep_result"):
		f.add("/keep_result", fmt.Sprintf("is not longer than attach_for (%s), so a late repeat would find no result",
			formatDuration(c.AttachFor)), "keep the result longer")
	}
	if raw.OnLost.Margin != "" && c.Class != action.RepeatableWithKey {
		f.add("/on_lost_response/margin", "a margin belongs to a key that is sent again", "leave it out")
	}
}
