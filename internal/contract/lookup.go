package contract

import (
	"fmt"
	"slices"
	"strings"

	"deed.dev/deed/internal/action"
)

// lookup checks how the target can be asked what became of an action.
func (f *faults) lookup(c *Contract, raw file) {
	if raw.Lookup == nil {
		return
	}
	if c.Class == action.ReadOnly {
		f.addAt(f.places.key("/lookup"), "/lookup", "a read needs no look-up", "leave it out")
		return
	}
	r := raw.Lookup.Request
	l := &Lookup{Method: r.Method, Credential: r.Credential, Authoritative: raw.Lookup.Authoritative}
	if l.Credential == "" {
		l.Credential = c.Credential
	}
	if r.URL != "" {
		if l.address = f.address("/lookup/request/url", r.URL); l.address != nil {
			l.address.target.Private = c.Host.Private
			l.Template = l.address.shape
			f.searchable(c, raw, l.address)
		}
	}
	l.headers, _ = f.headers("/lookup/request/headers", r.Headers, ofLookup, "")
	l.found = f.condition("/lookup/found", raw.Lookup.Found, ofAnswer)
	if raw.Lookup.Result != "" {
		l.result = f.text("/lookup/result", raw.Lookup.Result, ofAnswer)
		if l.result.whole() == nil && !f.any("/lookup/result") {
			f.add("/lookup/result", "this is not one expression", "write ${…} around all of it, for example ${body.items[0]}")
		}
	}
	l.Settle = f.duration("/lookup/settle", raw.Lookup.Settle, 0, 0, day)
	if l.Authoritative && raw.Lookup.Settle == "" {
		f.add("/lookup/authoritative", "a look-up proves absence only after a time to settle", "add settle, such as 30s")
	}
	c.Lookup = l
}

// searchable checks that what the look-up searches by goes to the target at all.
func (f *faults) searchable(c *Contract, raw file, a *address) {
	const at = "/lookup/request/url"
	for _, name := range slices.Concat(a.needs, a.names) {
		own, ok := strings.CutPrefix(name, "deed.")
		switch {
		case !ok && name != "deed":
		case own == "action_id":
			if !c.Key.Given() {
				f.add(at, "nothing carries action_id to the target", "say on_lost_response.key")
			}
		case own == "idem_key":
			if len(raw.Metadata.JSON)+len(raw.Metadata.Form) == 0 {
				f.add(at, "nothing carries idem_key to the target", "say metadata")
			}
		default:
			f.add(at, fmt.Sprintf("deed has no %q", own), "use deed.action_id or deed.idem_key")
		}
	}
}
