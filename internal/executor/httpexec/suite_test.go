package httpexec

import (
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/executor/executortest"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// HT-10, HT-11, HT-12, case 033: the suite, on each protocol that the executor speaks.
func TestSuite(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			executortest.Run(t, executortest.Harness{
				Executor: func(t *testing.T) executortest.Executor {
					return newExecutor(t, Options{Vault: anyHost{newVault(t, "http://127.0.0.1:1")}})
				},
				Target: func(t *testing.T) executortest.Target { return newSuiteTarget(t, scheme) },
				Behaviours: []executortest.Behaviour{
					executortest.Answers, executortest.Refuses, executortest.ComeLater, executortest.Fails, executortest.Overload,
					executortest.Breaks, executortest.Hangs, executortest.CutsShort, executortest.Absent,
				},
				Canary: canary, ReadsLate: true,
			})
		})
	}
}

// suiteTarget is a provider behind a proxy that can vanish.
type suiteTarget struct {
	*rig
	proxy *chaos.Proxy
}

func newSuiteTarget(t *testing.T, scheme string) suiteTarget {
	t.Helper()
	r := newRig(t, scheme)
	proxy, err := chaos.New(strings.SplitAfter(r.base, "://")[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	r.base = scheme + "://" + proxy.Addr()
	r.executor = newExecutor(t, Options{Vault: newVault(t, r.base)})
	return suiteTarget{r, proxy}
}

func (s suiteTarget) Dispatch(token string) action.Dispatch {
	d := s.dispatch()
	d.Token = token
	d.Operation.Body = []byte(`{"amount":100,"currency":"eur","metadata":{"token":"` + token + `"}}`)
	return d
}

func (s suiteTarget) Become(b executortest.Behaviour) {
	status := func(code int) provider.Fault {
		return provider.Fault{Kind: provider.AnswerStatus, Status: code, Body: "{}"}
	}
	switch b {
	case executortest.Answers:
		s.fault(provider.Fault{Kind: provider.EchoHeaders})
	case executortest.Refuses:
		s.fault(status(422))
	case executortest.ComeLater:
		s.fault(status(429))
	case executortest.Fails:
		s.fault(provider.Fault{Kind: provider.CommitThenStatus, Status: 500})
	case executortest.Overload:
		s.fault(status(503))
	case executortest.Breaks:
		s.fault(provider.Fault{Kind: provider.CommitThenDrop})
	case executortest.Hangs:
		s.fault(provider.Fault{Kind: provider.CommitThenHang})
	case executortest.CutsShort:
		s.fault(provider.Fault{Kind: provider.AnswerStatus, Status: 502, Body: strings.Repeat("x", 9000)})
		if err := s.proxy.Set(chaos.Plan{Mode: chaos.CutResponse, Bytes: 4000}); err != nil {
			s.Fatal(err)
		}
	case executortest.Absent:
		if err := s.proxy.Set(chaos.Plan{Mode: chaos.Reset, Connections: 0}); err != nil {
			s.Fatal(err)
		}
		if err := s.proxy.Set(chaos.Plan{Mode: chaos.Refuse}); err != nil {
			s.Fatal(err)
		}
	}
}

func (s suiteTarget) Seen(token string) int {
	n := 0
	for _, request := range s.provider.Requests() {
		if got := request.Values("Idempotency-Key"); len(got) == 1 && got[0] == token {
			n++
		}
	}
	return n
}

func (s suiteTarget) Arrived() int { return len(s.provider.Requests()) }
