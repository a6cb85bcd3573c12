package graph_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/graph"
)

// approvedJournal is the journal of two actions that a person approved, one that was denied and one that was revoked, as the
// bodies of its records.
func approvedJournal(t *testing.T) [][]byte {
	t.Helper()
	r := rig.New(t, rig.Options{
		Contracts: strings.ReplaceAll(rig.Usual, "timeout: TIMEOUT", "timeout: TIMEOUT\neach_use: true"), Wait: 20 * time.Millisecond,
	})
	for i, to := range []string{"a", "b", "c", "d"} {
		a := r.Call("send_email", `{"to":"`+to+`"}`).Do()
		switch i {
		case 0, 1:
			r.Approve(a.Action.ID)
		case 2:
			r.Deny(a.Action.ID)
		default:
			if _, err := r.Gateway.Revoke(t.Context(), rig.Operator(), action.RevokeAsked{Action: a.Action.ID, Why: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Settled()
	var bodies [][]byte
	if err := r.Store.Records(context.Background(), 0, func(_ int64, _ [32]byte, body []byte) error {
		bodies = append(bodies, bytes.Clone(body))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return bodies
}

func sourceOf(bodies [][]byte) graph.Source {
	return func(each func(int64, []byte) error) error {
		for i, b := range bodies {
			if err := each(int64(i), b); err != nil {
				return err
			}
		}
		return nil
	}
}

func policyOf(t *testing.T, text string) *approval.Policy {
	t.Helper()
	p, err := approval.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// AP-08, AP-21: with the journal and the policy alone, every decision is checked and every send held against it. Each record that
// was changed so that a decision no longer carries what follows from it is named, also where the chain is not looked at.
func TestEveryApprovalIsCheckedOffline(t *testing.T) {
	t.Parallel()
	bodies := approvedJournal(t)
	policy := policyOf(t, rig.PolicyText())
	report, err := graph.Approvals(sourceOf(bodies), policy)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Decisions) != 3 || report.Sent != 2 || len(report.Problems) != 0 || report.Decisions[0].Strength != action.ByKeyFile ||
		report.Decisions[0].Approver != rig.Ada || report.Last != int64(len(bodies)-1) {
		t.Fatalf("the report is %+v", report)
	}
	for name, c := range map[string]struct{ of, old, new string }{
		"another verdict":              {`"event":"approval.decided"`, `"decision":"approve"`, `"decision":"deny"`},
		"a denial made an approval":    {`"decision":"deny"`, `"decision":"deny"`, `"decision":"approve"`},
		"another approver":             {`"event":"approval.decided"`, `"approver":"ada"`, `"approver":"bob"`},
		"another nonce":                {`"event":"approval.decided"`, `"nonce":"n_`, `"nonce":"x_`},
		"another binding":              {`"event":"approval.decided"`, `"binding_digest":"sha256:`, `"binding_digest":"sha256:0`},
		"a stronger word than it has":  {`"event":"approval.decided"`, `"approval_strength":"key_file"`, `"approval_strength":"passkey"`},
		"a longer life":                {`"event":"approval.decided"`, `"expires_at":"20`, `"expires_at":"21`},
		"a request of something else":  {`"event":"approval.requested"`, `"binding_digest":"sha256:`, `"binding_digest":"sha256:0`},
		"a request for more approvers": {`"event":"approval.requested"`, `"needed":1`, `"needed":2`},
		"allowed with another binding": {`"event":"action.authorized"`, `"binding_digest":"sha256:`, `"binding_digest":"sha256:0`},
		"allowed for longer":           {`"event":"action.authorized"`, `"until":"20`, `"until":"21`},
	} {
		changed, done := make([][]byte, len(bodies)), false
		for i, b := range bodies {
			changed[i] = b
			if !done && bytes.Contains(b, []byte(c.of)) && bytes.Contains(b, []byte(c.old)) {
				changed[i], done = bytes.Replace(b, []byte(c.old), []byte(c.new), 1), true
			}
		}
		if !done {
			t.Errorf("%s: there is no such record", name)
			continue
		}
		report, err := graph.Approvals(sourceOf(changed), policy)
		if err != nil || len(report.Problems) == 0 {
			t.Errorf("%s: nothing is said of it (%v)", name, err)
		}
	}
	for name, without := range map[string]string{"a decision": `"event":"approval.decided"`, "a request": `"event":"approval.requested"`} {
		var kept [][]byte
		gone := false
		for _, b := range bodies {
			if !gone && bytes.Contains(b, []byte(without)) {
				gone = true
				continue
			}
			kept = append(kept, b)
		}
		if report, err := graph.Approvals(sourceOf(kept), policy); err != nil || len(report.Problems) == 0 {
			t.Errorf("without %s nothing is said (%v)", name, err)
		}
	}
	for name, text := range map[string]string{
		"without her":      strings.Replace(rig.PolicyText(), "name: ada", "name: eve", 1),
		"with other keys":  strings.NewReplacer("name: ada", "name: bob", "name: bob", "name: ada").Replace(rig.PolicyText()),
		"with no approver": "approvers: []\n",
	} {
		report, err := graph.Approvals(sourceOf(bodies), policyOf(t, text))
		if err != nil || len(report.Problems) < 3 || report.Decisions[0].Strength != "" {
			t.Errorf("by a policy %s: %v, %+v", name, err, report.Problems)
		}
	}
}

// AP-21: who approved what, when and how strongly is answered by the action's id, from the journal alone; where nobody was asked it
// says so.
func TestTheReportNamesWhoApproved(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{
		Contracts: strings.Replace(rig.Usual, "resource: mailbox/${args.to}", "resource: mailbox/${args.to}\neach_use: true", 1), Wait: 20 * time.Millisecond,
	})
	a := r.Call("send_email", `{"to":"a"}`).Do()
	r.Approve(a.Action.ID)
	b := r.Call("send_email", `{"to":"b"}`).Do()
	r.Deny(b.Action.ID)
	c := r.Call("get_echo", `{}`).Do()
	for id, want := range map[action.ID][]string{
		a.Action.ID: {"Yes, both. A person allowed it (rule each_use): ada, key_file", "approve by ada (key_file)", "approval.decided"},
		b.Action.ID: {"No. It was rejected (denied)", "deny by ada (key_file)"},
		c.Action.ID: {"Yes, both. The policy allowed it (rule session)"},
	} {
		text := printed(t, investigate(t, fromStore(r), id, ""))
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), w) {
				t.Errorf("%q is not in\n%s", w, text)
			}
		}
	}
}
