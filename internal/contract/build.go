package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"net/textproto"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

const (
	defaultAttempts = 3
	defaultTimeout  = 30 * time.Second
	leastTimeout    = 100 * time.Millisecond
	mostTimeout     = 10 * time.Minute
	// An approval that holds for long is one for circumstances that nobody has looked at.
	defaultExpires = 15 * time.Minute
	leastExpires   = time.Second
	mostExpires    = 7 * day
	// clockSkew is how far the clocks of deed and of a target may be apart when a key's life is reckoned.
	clockSkew = time.Minute
	// keepReads is how long the result of a read is kept: long enough for a caller that lost its answer.
	keepReads = day
)

// build turns one document into a contract, or names everything that is wrong with it.
func build(doc document) (*Contract, LoadErrors) {
	f := &faults{file: doc.file, places: doc.places}
	c := &Contract{File: doc.file, Channel: "http"}
	raw, err := decodeFile(f.shape(doc.root))
	if err != nil {
		f.add("", "the contract cannot be read", "")
		return nil, f.list
	}
	c.Tool, c.Title, c.Description, c.line = raw.Tool, raw.Title, raw.Description, f.places.of("/tool").line
	f.loss(c, raw)
	f.limits(c, raw)
	c.args = f.input(raw.Input.tree, raw.Defaults)
	f.request(c, raw)
	f.identifiers(c, raw)
	f.normalizers(c, raw)
	f.words(c, raw)
	f.rules(c, raw)
	f.lookup(c, raw)
	f.poll(c, raw)
	f.undo(c, raw)
	f.uses(c)
	f.secretArguments(c)
	if len(f.list) > 0 {
		return nil, sorted(f.list)
	}
	c.Source, err = canonical.Marshal(doc.root)
	if err != nil {
		f.add("", "the contract has no canonical form", "")
		return nil, f.list
	}
	sum := sha256.Sum256(c.Source)
	c.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return c, nil
}

func (f *faults) limits(c *Contract, raw file) {
	c.MaxAttempts = defaultAttempts
	if raw.Attempts != 0 {
		c.MaxAttempts = raw.Attempts
	}
	c.Timeout = f.duration("/timeout", raw.Timeout, defaultTimeout, leastTimeout, mostTimeout)
	c.ResponseLimit = f.size("/http/response_limit", raw.HTTP.ResponseLimit)
	c.EachUse = raw.EachUse
	f.approval(c, raw)
	if c.Key.Given() && c.Class == action.RepeatableWithKey {
		f.keyLife(c, raw)
	}
}

// approval reads how people approve. Without each_use they are asked about runs at most, and the defaults hold.
func (f *faults) approval(c *Contract, raw file) {
	c.Approval = Approval{Approvers: 1, Expires: defaultExpires}
	part := raw.Approval
	if part == nil {
		return
	}
	if !raw.EachUse {
		f.addAt(f.places.key("/approval"), "/approval", "nobody is asked about this tool", "add each_use: true, or leave approval out")
	}
	if part.Approvers != 0 {
		c.Approval.Approvers = part.Approvers
	}
	c.Approval.Expires = f.duration("/approval/expires", part.Expires, defaultExpires, leastExpires, mostExpires)
	c.Approval.NotRequester = part.NotRequester
}

// request reads what is sent, but for the identifiers in it.
func (f *faults) request(c *Contract, raw file) {
	h := raw.HTTP
	c.Method, c.Credential = h.Method, h.Credential
	if h.URL != "" {
		if a := f.address("/http/url", h.URL); a != nil {
			a.target.Private = f.private("/http/private", h.Private)
			c.address, c.Host, c.Template = a, a.target, a.shape
		}
	}
	f.body(c, h)
	key := textproto.CanonicalMIMEHeaderKey(c.Key.Header)
	fields, media := f.headers("/http/headers", h.Headers, ofCall, key)
	c.headers = fields
	switch {
	case media == "":
	case c.media != jsonType:
		f.add("/http/headers", "a Content-Type needs http.json", "leave it out")
	default:
		c.media = media
	}
}

func (f *faults) body(c *Contract, h httpPart) {
	switch {
	case h.JSON.given && h.Form != nil:
		f.addAt(f.places.key("/http/form"), "/http/form", "a request has one body", "keep json or form")
	case (h.JSON.given || h.Form != nil) && (h.Method == "GET" || h.Method == "HEAD"):
		f.addAt(f.places.key("/http/method"), "/http/method", h.Method+" carries no body", "put the arguments into the query: {?name}")
	case h.JSON.given:
		c.body, c.media = f.tree("/http/json", h.JSON.tree, ofCall), jsonType
	case h.Form != nil:
		fields := make(map[string]any, len(h.Form))
		for name, v := range h.Form {
			fields[name] = v.tree
		}
		c.body, c.media, c.form = f.tree("/http/form", fields, ofCall), formType, true
	}
}
