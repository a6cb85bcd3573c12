package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/journal"
	"deed.dev/deed/lab/provider"
)

func contentReader() action.Actor {
	return action.Actor{Kind: "process", Identity: "uid=0 exe=/usr/bin/deed", Strength: action.StrengthPeerPIDFD}
}

func contentReads(r *rig.Rig, id action.ID) (reads []rig.Event) {
	for _, e := range r.EventsOf(id) {
		if e.Kind() == string(action.ContentReadKind) {
			reads = append(reads, e)
		}
	}
	return reads
}

func readCode(err error) action.Code {
	var known *action.Error
	errors.As(err, &known)
	if known == nil {
		return ""
	}
	return known.Code
}

// ST-13, AU-27: a person reads arguments, operation and answer of an action, and the journal says who, what and why. Reading
// changes nothing about the action, and a decision about it needs no new look.
func TestReadingContentIsAnEvent(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	mail := r.Call("send_email", `{"to":"canary-recipient"}`).Do().Action
	_, before, err := r.Store.Place(t.Context(), mail.ID)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Gateway.ReadContent(t.Context(), contentReader(), action.ReadAsked{Action: mail.ID, Why: " the recipient asks \n"})
	if err != nil || !strings.Contains(string(c.Arguments), "canary-recipient") || !strings.Contains(c.Operation.URL(), "canary-recipient") || c.Answer != nil {
		t.Fatalf("got %s, %+v, %q (%v)", c.Arguments, c.Operation, c.Answer, err)
	}
	if got := r.Stored(mail.ID); got.UpdatedAt != mail.UpdatedAt || got.State != mail.State {
		t.Errorf("reading made the action %+v", got)
	}
	if _, after, err := r.Store.Place(t.Context(), mail.ID); err != nil || after != before {
		t.Errorf("reading moved the place of the action (%v)", err)
	}
	charge := r.Call("charge", `{"amount":700,"customer":"cus_7"}`).Do().Action
	c, err = r.Gateway.ReadContent(t.Context(), contentReader(), action.ReadAsked{Action: charge.ID, Why: "again"})
	if err != nil || !strings.Contains(string(c.Answer), "cus_7") {
		t.Fatalf("got %q (%v)", c.Answer, err)
	}
	reads := append(contentReads(r, mail.ID), contentReads(r, charge.ID)...)
	if len(reads) != 2 {
		t.Fatalf("%d readings are on record, want 2", len(reads))
	}
	for i, want := range []struct{ why, kinds string }{
		{"the recipient asks", "[arguments operation]"}, {"again", "[arguments operation answer"},
	} {
		e := reads[i]
		if e.Text("read.why") != want.why || !strings.HasPrefix(e.Text("read.kinds"), want.kinds) || e.Text("actor.identity") != "uid=0 exe=/usr/bin/deed" ||
			e.Text("actor.strength") != string(action.StrengthPeerPIDFD) {
			t.Errorf("reading %d is on record as %v", i, e)
		}
	}
	if strings.Contains(r.Export(), "canary-recipient") {
		t.Error("the journal holds what was read")
	}
}

// AU-27: without a reason, without a verified reader, and without a journal that takes the event, nothing is shown.
func TestContentIsNotShownWithoutItsEvent(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("charge", `{"amount":700,"customer":"cus_7"}`).Do().Action.ID
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		by   action.Actor
		ask  action.ReadAsked
		code action.Code
	}{
		"no reason":        {t.Context(), contentReader(), action.ReadAsked{Action: id}, action.CodeInvalidArguments},
		"a blank reason":   {t.Context(), contentReader(), action.ReadAsked{Action: id, Why: " \t\n"}, action.CodeInvalidArguments},
		"a long reason":    {t.Context(), contentReader(), action.ReadAsked{Action: id, Why: strings.Repeat("x", 4097)}, action.CodeInvalidArguments},
		"no UTF-8":         {t.Context(), contentReader(), action.ReadAsked{Action: id, Why: "\xff"}, action.CodeInvalidArguments},
		"nobody":           {t.Context(), action.Actor{}, action.ReadAsked{Action: id, Why: "x"}, action.CodeUnauthenticated},
		"no such action":   {t.Context(), contentReader(), action.ReadAsked{Action: "act_00000000000000000000000000", Why: "x"}, action.CodeNoSuchAction},
		"given up at once": {ended, contentReader(), action.ReadAsked{Action: id, Why: "x"}, action.CodeInternal},
	} {
		got, err := r.Gateway.ReadContent(c.ctx, c.by, c.ask)
		if readCode(err) != c.code || got.Arguments != nil || got.Operation != nil || got.Answer != nil {
			t.Errorf("%s: %v, %+v; want %s and nothing", name, err, got, c.code)
		}
	}
	if n := len(contentReads(r, id)); n != 0 {
		t.Errorf("%d readings are on record", n)
	}
}

// mute is a store whose journal takes nothing.
type mute struct{ store.Store }

func (mute) Commit(context.Context, func(store.Tx) error) error { return store.ErrLatched }

// AU-27: a reading that cannot be recorded shows nothing.
func TestContentIsNotShownWhenTheJournalCannotBeWritten(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("charge", `{"amount":700,"customer":"cus_7"}`).Do().Action.ID
	g := r.Another(func(o *gateway.Options) { o.Store = mute{o.Store} })
	got, err := g.ReadContent(t.Context(), contentReader(), action.ReadAsked{Action: id, Why: "x"})
	if readCode(err) != action.CodeJournalUnavailable || got.Arguments != nil || got.Operation != nil || got.Answer != nil || !strings.Contains(err.Error(), "nothing was shown") {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The event is durable before the bytes are given: when the content comes back, another process reads the event already.
func TestTheReadingIsDurableBeforeTheContentIsGiven(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("charge", `{"amount":700,"customer":"cus_7"}`).Do().Action.ID
	seen := -1
	g := r.Another(func(o *gateway.Options) {
		o.Log = slog.New(afterwards{slog.DiscardHandler, func() { seen = len(contentReads(r, id)) }})
	})
	if _, err := g.ReadContent(t.Context(), contentReader(), action.ReadAsked{Action: id, Why: "x"}); err != nil || seen != 1 {
		t.Errorf("%d readings were on record when the content was about to be given, want 1 (%v)", seen, err)
	}
}

// afterwards calls a function when a line is logged: the line says that the reading was recorded.
type afterwards struct {
	slog.Handler
	do func()
}

func (a afterwards) Enabled(context.Context, slog.Level) bool { return true }

func (a afterwards) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "content was read") {
		a.do()
	}
	return nil
}

// AU-27: readings survive a rebuild of the rows, in the order in which they were made.
func TestReadingsAreRebuilt(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	id := r.Call("charge", `{"amount":700,"customer":"cus_7"}`).Do().Action.ID
	for _, why := range []string{"first", "second"} {
		if _, err := r.Gateway.ReadContent(t.Context(), contentReader(), action.ReadAsked{Action: id, Why: why}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Store.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	var whys []string
	for _, e := range contentReads(r, id) {
		whys = append(whys, e.Text("read.why"))
	}
	if !slices.Equal(whys, []string{"first", "second"}) {
		t.Errorf("after a rebuild the readings are %v", whys)
	}
	var s store.Reader = r.Store
	if _, err := s.Payload(t.Context(), store.Arguments, string(r.Stored(id).Intent)); err != nil {
		t.Error(err)
	}
}

// Retention: what was kept for as long as the contract says is gone from the record and from the files, salts included. The
// journal keeps its commitments and verifies, and whoever asks for the content is told that it is erased. (AU-27, ST-13)
func TestErasureLeavesTheJournalWhole(t *testing.T) {
	t.Parallel()
	contracts := strings.NewReplacer("keep_result: 30d", "keep_result: 1s", "attach_for: 15m", "attach_for: 500ms").Replace(rig.Usual)
	r := rig.New(t, rig.Options{Contracts: contracts})
	act := r.Call("charge", `{"amount":700,"customer":"cus_7"}`).Do().Action
	if _, err := r.Gateway.ReadContent(t.Context(), contentReader(), action.ReadAsked{Action: act.ID, Why: "in time"}); err != nil {
		t.Fatal(err)
	}
	if n := len(httpContents(r)); n < 3 {
		t.Fatalf("%d payloads are kept", n)
	}
	time.Sleep(time.Until(act.FinishedAt.Add(1100 * time.Millisecond))) // as long as it is kept
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); r.Gateway.Run(ctx) }()
	for deadline := time.Now().Add(15 * time.Second); !r.Stored(act.ID).Purged; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was erased")
		}
	}
	cancel()
	<-over
	if left := httpContents(r); len(left) != 0 {
		t.Errorf("%d payloads are left: %q", len(left), left)
	}
	got, err := r.Gateway.ReadContent(t.Context(), contentReader(), action.ReadAsked{Action: act.ID, Why: "too late"})
	if readCode(err) != action.CodeContentErased || got.Arguments != nil || !strings.Contains(err.Error(), "Nothing was shown") {
		t.Errorf("after the erasure: %+v, %v", got, err)
	}
	found, err := journal.Verify(strings.NewReader(r.Export()))
	if err != nil || found.Bad != nil || found.RecordsChecked == 0 {
		t.Errorf("the journal: %+v, %v", found, err)
	}
	kinds := rig.Kinds(r.EventsOf(act.ID))
	if !slices.Contains(kinds, "action.purged") || !slices.Contains(kinds, "content.read") || !strings.Contains(r.Export(), string(act.Operation)) {
		t.Errorf("the journal has %v", kinds)
	}
	r.Restart("")
	if !r.Stored(act.ID).Purged {
		t.Error("after a restart it is not erased")
	}
}
