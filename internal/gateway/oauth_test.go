package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

// case 032, HT-04: a token is fetched before a send, and anew after one 401 that the contract promises to precede any
// effect. It never makes a request to the target that is not an attempt on record, and never a second effect.
func TestATokenIsRenewedOnceAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	contracts := strings.Replace(rig.Usual, "no_effect_when: ${status in [400, 401, 403, 404, 422]}\nretry_when: ${status in [429, 503]}",
		"no_effect_when: ${status in [400, 403, 404, 422]}\nretry_when: ${status in [401, 429, 503]}", 1)
	refused := provider.Fault{Kind: provider.AnswerStatus, Status: 401, Times: 1}
	for _, c := range []struct {
		name            string
		contracts       string
		faults          []provider.Fault
		state           action.State
		requests, sends int
		tokens          int64
	}{
		{"taken", contracts, nil, action.Completed, 1, 1, 1},
		{"refused once", contracts, []provider.Fault{refused}, action.Completed, 2, 2, 2},
		{"refused twice", contracts, []provider.Fault{refused, refused}, action.Failed, 2, 2, 2},
		{"refused, and no promise", rig.Usual, []provider.Fault{refused}, action.Failed, 1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var fetched atomic.Int64
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"access_token":"token-number-%d","token_type":"Bearer","expires_in":3600}`, fetched.Add(1))
			}))
			defer tokens.Close()
			r := rig.New(t, rig.Options{Contracts: c.contracts, Secret: httpCanary, SecretAs: "kind: oauth\noauth: {token_url: '" + tokens.URL + "', client_id: deed}"})
			r.Break(c.faults...)
			a := r.Call("charge", keysCharge).Do()
			effects := 0
			if c.state == action.Completed {
				effects = 1
			}
			if a.Action.State != c.state || r.Requests() != c.requests || len(r.AttemptsOf(a.Action.ID)) != c.sends || r.Effects() != effects || fetched.Load() != c.tokens {
				t.Errorf("%s (%s): %d requests, %d attempts, %d effects, %d tokens", a.Action.State, a.Action.Reason, r.Requests(), len(r.AttemptsOf(a.Action.ID)), r.Effects(), fetched.Load())
			}
			for i, q := range r.Provider.Requests() {
				if got := q.Values("Authorization"); len(got) != 1 || got[0] != fmt.Sprintf("Bearer token-number-%d", i+1) {
					t.Errorf("request %d came with %q", i+1, got)
				}
			}
			httpSweep(t, "what is kept and said", r.Export()+httpFiles(r)+httpSaid(a, nil), httpCanary)
			httpSweep(t, "what is kept and said", r.Export()+httpFiles(r)+httpSaid(a, nil), "token-number-1")
		})
	}
}
