package httpexec

import (
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/lab/provider"
)

// Case 023, HT-13: a redirect to another host is an answer. Nobody goes there, and no credential does.
func TestRedirectIsNotFollowed(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		for _, status := range []int{300, 301, 302, 303, 305, 307, 308} {
			for _, credential := range []string{"header", "bearer"} {
				a, b := newRig(t, scheme), newRig(t, scheme)
				location := strings.Replace(b.base, "://", "://user:"+"pw@", 1) + "/v1/charges?token=abc#x"
				a.fault(provider.Fault{Kind: provider.Redirect, Status: status, Location: location})
				d := a.dispatch()
				d.Operation.Credential = credential
				out := a.perform(d)
				if status == 307 || status == 308 {
					want(t, out, action.AttemptRefused, action.NoEffectProven, ReasonRedirectRefused)
				} else {
					want(t, out, action.AttemptCompleted, action.Indeterminate, ReasonAmbiguous)
				}
				if out.Status != status {
					t.Errorf("status %d is kept as %d", status, out.Status)
				}
				a.wantRequests(1, 0)
				b.wantRequests(0, 0)
				if got := keptHeader(out, "location"); got != b.base {
					t.Errorf("the location is kept as %q, want %q", got, b.base)
				}
			}
		}
	}
}

// A contract may say what a redirect means.
func TestContractDecidesAboutRedirect(t *testing.T) {
	r := newRig(t, "http")
	r.fault(provider.Fault{Kind: provider.Redirect, Status: 303, Location: "/v1/charges/ch_1"})
	d := r.dispatch()
	d.Judge = func(action.Response) action.Verdict { return action.Verdict{Certainty: action.EffectProven} }
	out := r.perform(d)
	want(t, out, action.AttemptCompleted, action.EffectProven, "")
	if got := keptHeader(out, "location"); got != r.base {
		t.Errorf("a relative location is kept as %q, want %q", got, r.base)
	}
	d.Judge = func(action.Response) action.Verdict { return action.Verdict{Certainty: action.NoEffectProven} }
	want(t, r.perform(d), action.AttemptRefused, action.NoEffectProven, ReasonRedirectRefused)
	r.wantRequests(2, 0)
}

func keptHeader(out action.Outcome, name string) string {
	for _, h := range out.Result.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}
