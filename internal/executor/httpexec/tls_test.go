package httpexec

import (
	"crypto/tls"
	"net"
	"testing"

	"deed.dev/deed/internal/action"
)

// A target that cannot show who it is gets nothing: the handshake fails, and no byte of the request has left.
func TestTargetWithoutValidCertificateGetsNothing(t *testing.T) {
	r := newRig(t, "https")
	stranger := New(Options{Vault: newVault(t, r.base)}) // does not know the authority
	defer stranger.Close()
	out := stranger.Perform(t.Context(), r.dispatch())
	want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonTLSFailed)

	d := r.dispatch() // the certificate is for 127.0.0.1 and not for 127.0.0.2
	d.Operation.Credential, d.Operation.Target.Host = "", "other.example"
	r.executor = newExecutor(t, Options{Resolver: resolvesTo([]string{"127.0.0.1"})})
	want(t, r.perform(d), action.AttemptNotSent, action.NoEffectProven, ReasonTLSFailed)
	d.Operation.Target.Host = "target.example" // for this name it is
	want(t, r.perform(d), action.AttemptCompleted, action.EffectProven, "")
	r.wantRequests(1, 1)
}

func TestOldTLSIsRefused(t *testing.T) {
	certificate, _ := authority()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MaxVersion: tls.VersionTLS11})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
	}()
	executor := newExecutor(t, Options{})
	out := executor.Perform(t.Context(), resendDispatch(t, "https://"+listener.Addr().String(), "GET", "", nil))
	want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonTLSFailed)
}

// UN-03: the time runs out before the first byte of the request: in the dial, or in the handshake.
func TestTimeoutBeforeTheFirstByteIsNotSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	executor := newExecutor(t, Options{})
	d := resendDispatch(t, "https://"+listener.Addr().String(), "POST", "Idempotency-Key", []byte("x"))
	d.Operation.Timeout = 100
	out := executor.Perform(t.Context(), d)
	want(t, out, action.AttemptNotSent, action.NoEffectProven, ReasonTimeout)
}
