package vault

import (
	"context"
	"net/http"
)

// Verdict is what a check says of a value.
type Verdict int

// Verdicts. The zero value is no evidence.
const (
	NoEvidence Verdict = iota // no answer, or one that says neither
	Active                    // the target took it
	Refused                   // the target answered that it does not
)

func (d Verdict) String() string {
	return [...]string{"no evidence", "active", "refused"}[d]
}

// Verdicts are what checks say of the two values of a rotation.
type Verdicts struct{ New, Old Verdict }

// Over reports whether the two say which value is active, and whether it is the new one.
func (d Verdicts) Over() (over, newIsActive bool) {
	return d.New == Active || d.New == Refused && d.Old == Active, d.New == Active
}

// Check makes the credential's check with both values of a rotation that is under way: two read-only requests to the
// credential's own host. A credential without a check gives no evidence.
func (v *Vault) Check(ctx context.Context, path string, u Unlocker, c Credential) (Verdicts, error) {
	s, err := read(path, u)
	if err != nil {
		return Verdicts{}, err
	}
	defer s.wipe()
	e, ok := s.entries[c.Ref]
	if !ok || e.since.IsZero() || !e.purpose.covers(c) {
		return Verdicts{}, ErrNoEntry
	}
	return Verdicts{v.check(ctx, c, e.next), v.check(ctx, c, e.value)}, nil
}

func (v *Vault) check(ctx context.Context, c Credential, value buffer) Verdict {
	_, target, err := targetOf(c.Check, c.InsecureLoopback)
	if c.Check == "" || err != nil || !c.Bound(target) {
		return NoEvidence
	}
	o, err := open(c, string(value.bytes()))
	if err != nil {
		return NoEvidence
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Check, http.NoBody)
	if err != nil || o.Apply(req) != nil {
		return NoEvidence
	}
	client := v.client()
	if pair, ok := o.Certificate(); ok {
		client.Transport.(*http.Transport).TLSClientConfig.Certificates = append(client.Transport.(*http.Transport).TLSClientConfig.Certificates, pair)
	}
	res, err := client.Do(req)
	if err != nil {
		return NoEvidence
	}
	_ = res.Body.Close()
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return Active
	case res.StatusCode == http.StatusUnauthorized:
		return Refused
	}
	return NoEvidence // a 403 may be a right that is missing, a 429 or 5xx anything
}
