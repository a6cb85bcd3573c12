package graph_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/graph"
	"deed.dev/deed/lab/provider"
)

var update = flag.Bool("update", false, "rewrite the golden reports and the example of docs/investigate.md")

const charge = `{"amount":25000,"customer":"cus_42"}`

// fixture is a story on the stage of a whole gateway, and the actions that an investigator asks about.
type fixture func(t *testing.T) (r *rig.Rig, first, second action.ID)

var fixtures = map[string]fixture{
	"delivery_failed":   deliveryFailed,
	"two_processes":     twoProcesses,
	"two_agents":        twoAgents,
	"resent":            resent,
	"held":              held,
	"process_lost":      processLost,
	"repeated":          repeated,
	"refused_by_target": refusedByTarget,
}

// AU-19: the charge completed, its caller was gone, and a retry of the same run came and got the recorded result.
func deliveryFailed(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	ctx, leave := context.WithCancel(context.Background())
	call := r.Call("charge", charge).ID("41", "s").Under(ctx).Go()
	r.AwaitEffects(1)
	leave()
	id := call.Answer().Action.ID
	r.Break()
	r.Restart("")
	r.Call("charge", charge).ID("42", "t").Do()
	return r, id, ""
}

// AU-19, AU-20: two processes of one program ask for the same charge.
func twoProcesses(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{})
	a := r.From(rig.Agent("agent", 4711), "charge", charge).Do()
	b := r.From(rig.Agent("agent", 4712), "charge", charge).Do()
	return r, a.Action.ID, b.Action.ID
}

// AU-20: two different agents ask for the same charge.
func twoAgents(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{})
	a := r.From(rig.Agent("planner", 4711), "charge", charge).Do()
	b := r.From(rig.Agent("worker", 4712), "charge", charge).Do()
	return r, a.Action.ID, b.Action.ID
}

// The first attempt timed out; the second was sent under the same action and answered.
func resent(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{Timeout: "300ms"})
	r.Break(provider.Fault{Kind: provider.HangAfterRead, Times: 1})
	a := r.Call("charge", charge).Key("task", 1, "toolu_1").Do()
	if a.Action.State != action.Completed || a.Action.Attempt != 2 {
		t.Fatalf("the charge is %s after %d attempts, want completed after 2", a.Action.State, a.Action.Attempt)
	}
	return r, a.Action.ID, ""
}

// A mail became unknown, and another one to the same mailbox was held back.
func held(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := r.Call("send_email", `{"to":"a"}`).Do()
	if b := r.Call("send_email", `{"to":"a","subject":"again"}`).ID("2", "s").Do(); !b.Held {
		t.Fatalf("the second mail is not held: %+v", b.Status())
	}
	return r, a.Action.ID, ""
}

// The gateway was killed between the effect and its record, at a target that cannot be asked.
func processLost(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
	ctx, cancel := context.WithCancel(context.Background())
	call := r.Call("send_email", `{"to":"a"}`).Under(ctx).Go()
	r.AwaitEffects(1)
	cancel()
	id := call.Answer().Action.ID
	r.CrashWith(func() { r.Break() })
	r.Idle()
	return r, id, ""
}

// The agent did it a second time on purpose, and showed that it had the first result.
func repeated(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{})
	a := r.Call("charge", charge).Do()
	b := r.Call("charge", strings.Replace(charge, "{", `{"repeat_of":"`+a.RepeatOf+`",`, 1)).ID("2", "s").Do()
	if b.Action.Repeats != a.Action.ID {
		t.Fatalf("%s repeats %q, want %s", b.Action.ID, b.Action.Repeats, a.Action.ID)
	}
	return r, a.Action.ID, b.Action.ID
}

// The target refused it before any effect; a call that the contract refused names no action.
func refusedByTarget(t *testing.T) (*rig.Rig, action.ID, action.ID) {
	r := rig.New(t, rig.Options{})
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 400})
	a := r.Call("charge", charge).Do()
	if _, err := r.Call("charge", `{"amount":"many"}`).Try(); err == nil {
		t.Fatal("a call that does not fit its contract made an action")
	}
	return r, a.Action.ID, ""
}

// fromStore reads the records as `deed investigate` does.
func fromStore(r *rig.Rig) graph.Source {
	if r.Gateway != nil {
		r.Settled()
	}
	reader := r.Reader()
	return func(each func(int64, []byte) error) error {
		return reader.Records(context.Background(), 0, func(seq int64, _ [32]byte, body []byte) error { return each(seq, body) })
	}
}

func investigate(t *testing.T, records graph.Source, first, second action.ID) graph.Report {
	t.Helper()
	about := []action.ID{first}
	if second != "" {
		about = append(about, second)
	}
	j, err := graph.Read(records, about...)
	if err != nil {
		t.Fatal(err)
	}
	report, err := j.Investigate(first, second)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

var identifier = regexp.MustCompile(`\b(run|call|int|act|att|evt|apr|result|obs|own)_[0-9a-z]{26}\b`)
var sentBytes = regexp.MustCompile(`\b\d+ bytes\b`)

// printed is the report's text with everything that differs from run to run made equal, and equally wide.
func printed(t *testing.T, r graph.Report) string {
	t.Helper()
	began := time.Date(2026, 7, 22, 10, 9, 57, 0, time.UTC)
	for _, a := range r.Answers {
		for i := range a.Events {
			a.Events[i].Time = began.Add(time.Duration(a.Events[i].Seq) * 20 * time.Millisecond)
		}
	}
	var b bytes.Buffer
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	text := identifier.ReplaceAllStringFunc(b.String(), func(id string) string {
		if names[id] == "" {
			kind, _, _ := strings.Cut(id, "_")
			n := 1
			for other := range names {
				if strings.HasPrefix(other, kind+"_") {
					n++
				}
			}
			names[id] = fmt.Sprintf("%s_01j4k8j7dx7v%014d", kind, n)
		}
		return names[id]
	})
	return sentBytes.ReplaceAllString(text, "437 bytes")
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", filepath.Base(path), got, want)
	}
}
