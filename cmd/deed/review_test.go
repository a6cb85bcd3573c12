package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/lab/provider"
)

const queryableTool = `tool: pay_invoice
description: A charge at a target that can be asked afterwards.
input: {type: object, required: [amount], properties: {amount: {type: integer}}}
http: {method: POST, url: PROVIDER/v1/charges, private: [127.0.0.0/8], json: {amount: "${args.amount}", currency: usd, metadata: {}}}
metadata: {json: /metadata/idem_key}
on_lost_response: {class: status_queryable, attach_for: 15m, review_after: 1s, evidence: the provider of these tests}
lookup:
  request: {method: GET, url: "PROVIDER/v1/charges?metadata%5Bidem_key%5D={deed.idem_key}"}
  found: ${size(body.data) > 0}
  authoritative: false
done_when: ${status == 201}
no_effect_when: ${status in [400, 422]}
timeout: 5s
keep_result: 30d
`

// deed runs the program against the daemon's directories and gives what it prints.
func (d *daemon) deed(args ...string) (string, error) {
	cmd := exec.Command(built.deed, append(args, "--config", filepath.Join(d.dir, "config"), "--data", d.data(), "--operator-socket", d.operator)...)
	cmd.Env = append(os.Environ(), "DEED_DEMO_SECRET=canary-daemon-secret")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *daemon) metrics() string {
	d.t.Helper()
	status, text, err := getUnix(d.operator, "/metrics")
	d.must(err)
	if status != http.StatusOK {
		d.t.Fatalf("the metrics are answered %d: %s", status, text)
	}
	return text
}

// UN-26: an action that stays unknown beyond the limit of its class is in the review list and in a metric, also while deed
// itself still waits. Here its target said that it is not to be asked for an hour.
func TestWhatIsOverdueIsSeen(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, queryableTool)
	d.must(d.provider.Set(provider.Switches{Faults: []provider.Fault{
		{Kind: provider.CommitThenDrop, Times: 1},
		{Kind: provider.AnswerStatus, Method: http.MethodGet, Status: http.StatusServiceUnavailable, RetryAfter: "3600"},
	}}))
	d.start(built.deed)
	st, ok := d.call(t.Context(), "pay_invoice", `{"amount":5}`, "k")
	if !ok || st.State != action.Unknown {
		t.Fatalf("got %+v", st)
	}
	const metric = "\ndeed_actions_overdue 1\n"
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(d.metrics(), metric); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no metric tells of it:\n%s\n%s", d.metrics(), d.stderr.String())
		}
	}
	if text := d.metrics(); !strings.Contains(text, `deed_actions_unknown{recovery="reconciling"} 1`) || strings.Contains(text, "oldest_age_seconds 0\n") {
		t.Errorf("the metrics are\n%s", text)
	}
	if out, err := d.deed("review", "list"); err != nil || !strings.Contains(out, string(st.ActionID)) || !strings.Contains(out, "overdue") {
		t.Errorf("the list is %v\n%s", err, out)
	}
	if out, err := d.deed("status"); err != nil || !strings.Contains(out, "1 reconciling (1 overdue)") {
		t.Errorf("the status is %v\n%s", err, out)
	}
	s, err := operator.NewClient(d.operator).Status(t.Context())
	if err != nil || s.Backlog.Oldest != st.ActionID || s.Backlog.Overdue != 1 || s.PID != d.cmd.Process.Pid {
		t.Errorf("the door says %+v, %v", s, err)
	}
	// A person may settle it all the same, while deed waits for its turn to ask.
	if out, err := d.deed("review", "happened", string(st.ActionID), "--evidence", "charge ch_1 in the dashboard"); err != nil || !strings.Contains(out, "completed") {
		t.Errorf("the decision is answered %v\n%s", err, out)
	}
	if !strings.Contains(d.metrics(), "\ndeed_actions_overdue 0\n") || len(d.provider.Effects()) != 1 {
		t.Errorf("afterwards there are %d effects, and\n%s", len(d.provider.Effects()), d.metrics())
	}
}

const undoTools = `tool: place_order
description: An order that can be cancelled.
input: {type: object, required: [item], properties: {item: {type: string}}}
http: {method: POST, url: "PROVIDER/v1/objects/{item}", private: [127.0.0.0/8], json: {item: "${args.item}"}}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m}
undo: {tool: cancel_order, arguments: {item: "${args.item}"}}
done_when: ${status in [200, 201]}
timeout: 5s
keep_result: 30d
---
tool: cancel_order
description: Cancel an order.
input: {type: object, required: [item], properties: {item: {type: string}}}
http: {method: POST, url: "PROVIDER/v1/objects/{item}-cancelled", private: [127.0.0.0/8], json: {item: "${args.item}"}}
on_lost_response: {class: blocked_after_unknown, attach_for: 15m}
done_when: ${status in [200, 201]}
timeout: 5s
keep_result: 30d
`

// UN-29, API-14: a compensation is an action of its own that names what it compensates. Asked for twice, and with its answer
// lost in between, it is one.
func TestUndoCompensatesOnce(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, undoTools)
	d.start(built.deed)
	st, ok := d.call(t.Context(), "place_order", `{"item":"i1"}`, "k")
	if !ok || st.State != action.Completed {
		t.Fatalf("got %+v", st)
	}
	if out, err := d.deed("undo", string(st.ActionID)); err != nil || !strings.Contains(out, "completed") || strings.Contains(out, string(st.ActionID)) {
		t.Fatalf("undo is answered %v\n%s", err, out)
	}
	if out, err := d.deed("undo", string(st.ActionID)); err != nil || !strings.Contains(out, "Nothing new was done") {
		t.Errorf("a second undo is answered %v\n%s", err, out)
	}
	d.stop()
	if out, err := d.deed("undo", string(st.ActionID)); err != nil || !strings.Contains(out, "Nothing new was done") {
		t.Errorf("a third undo, without a gateway, is answered %v\n%s", err, out)
	}
	all := d.actions()
	if len(all) != 2 || all[0].Tool != "cancel_order" || all[0].Compensates != st.ActionID || len(d.provider.Effects()) != 2 {
		t.Errorf("%d actions, %d effects; the newest is %s, which compensates %q", len(all), len(d.provider.Effects()), all[0].Tool, all[0].Compensates)
	}
}
