package mcpserver_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/mcpserver"
	"deed.dev/deed/lab/provider"
)

// peer speaks to a door over a byte stream, line by line.
type peer struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	done chan error // what ServeStream returned
}

// newPeer connects, and says what a client says first.
func newPeer(t *testing.T, s *mcpserver.Server) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &peer{t: t, in: inW, out: bufio.NewReader(outR), done: make(chan error, 1)}
	go func() {
		err := s.ServeStream(t.Context(), inR, outW, rig.Agent("agent", 7), "mcp-stdio")
		_ = outW.Close()
		p.done <- err
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	p.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	p.hear()
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

func (p *peer) say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) charge(id int, args string) {
	p.t.Helper()
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"charge","arguments":%s}}`, id, args))
}

func (p *peer) hear() []byte {
	p.t.Helper()
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return line
}

// ended waits until the door has left the stream.
func (p *peer) ended() {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Errorf("the stream ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		p.t.Fatal("the stream did not end")
	}
}

// A request with an id that was in use had a place of its own in the list of what is to be answered, and no answer ever took
// it away: the stream did not end when its peer had closed it and everything was answered.
func TestADuplicateIDDoesNotKeepTheStreamOpen(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	p := newPeer(t, r.Door().Server)
	p.charge(1, charge)
	r.AwaitEffects(1)
	p.charge(1, `{"amount":2,"customer":"cus_7"}`)
	_ = p.in.Close()
	r.Break()
	if st := statusOf(t, p.hear()); st.State != action.Completed {
		t.Errorf("the first call is %s, want completed", st.State)
	}
	p.ended()
	if rest, err := io.ReadAll(p.out); err != nil || len(rest) != 0 {
		t.Errorf("after the answer came %q (%v)", rest, err)
	}
	if r.Effects() != 1 || len(r.Actions()) != 1 {
		t.Errorf("%d effects of %d actions, want 1 of 1", r.Effects(), len(r.Actions()))
	}
}

// noted is a gateway that keeps what the door says about the arrival of answers.
type noted struct {
	*gateway.Gateway
	mu    sync.Mutex
	notes []string
}

// Delivered keeps a note and passes it on.
func (n *noted) Delivered(id action.ID, to action.Delivery, why string) {
	n.mu.Lock()
	n.notes = append(n.notes, string(to)+" "+why)
	n.mu.Unlock()
	n.Gateway.Delivered(id, to, why)
}

func (n *noted) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.notes)
}

// An answer that said "still running" was noted as handed over, and so was the result that came after it, which nobody had
// been given.
func TestAnAnswerInProgressIsNoEvidenceOfDelivery(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Wait: 100 * time.Millisecond})
	noted := &noted{Gateway: r.Gateway}
	server := mcpserver.New(mcpserver.Options{
		Gateway: noted, Tools: []mcpserver.Tool{{Name: "charge", InputSchema: []byte(`{"type":"object"}`)}},
		Cancelled: gateway.ErrCancelled, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	p := newPeer(t, server)
	p.charge(1, charge)
	early := statusOf(t, p.hear())
	if early.Code != action.CodeInProgress {
		t.Fatalf("the first answer says %s, %s; want in progress", early.State, early.Code)
	}
	p.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`) // its answer comes after the note about the one before
	p.hear()
	r.Break()
	awaitKind(t, r, early.ActionID, "action.completed")
	if all := noted.all(); len(all) != 0 {
		t.Errorf("the door noted %q of an answer without a result", all)
	}
	if d := r.Stored(early.ActionID).Delivery; d != action.DeliveryPending {
		t.Errorf("the delivery is %s, want pending", d)
	}
	p.charge(3, charge)
	if late := statusOf(t, p.hear()); late.AttachedTo != early.ActionID || late.State != action.Completed {
		t.Errorf("the same call is %+v, want attached to %s and completed", late, early.ActionID)
	}
	_ = p.in.Close()
	p.ended()
	if all := noted.all(); len(all) != 1 || !strings.HasPrefix(all[0], string(action.DeliveryUnconfirmed)) {
		t.Errorf("of the result the door noted %q, want that it was handed over, once", all)
	}
}
