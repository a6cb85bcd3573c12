package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/operator"
)

// askedStage is a stage on which every use of a tool needs a person.
func askedStage(t *testing.T) *stage {
	t.Helper()
	text := strings.Replace(rig.Usual, `json: {to: "${args.to}"}`, `json: {to: "${args.to}", text: "${args.?subject}"}`, 1)
	return newStageOf(t, rig.Options{
		Contracts: strings.ReplaceAll(text, "timeout: TIMEOUT", "timeout: TIMEOUT\neach_use: true\nimpact: something happens"), Wait: 30 * time.Millisecond,
	})
}

func (s *stage) asked(args string) (action.ID, operator.Request) {
	s.T.Helper()
	a := s.Call("send_email", args).Do()
	if a.Action.State != action.AwaitingApproval {
		s.T.Fatalf("it is %s", a.Action.State)
	}
	r, err := operator.NewClient(s.socket).Request(s.T.Context(), string(a.Action.ID))
	s.must(err)
	return a.Action.ID, r
}

// AP-05, AP-04: what a person is shown comes from the resolved record: channel, destination, the shape of the operation, the
// credential, the process that asks and what happens; and it can be checked against what the request is bound to.
func TestARequestShowsTheResolvedOperation(t *testing.T) {
	t.Parallel()
	s := askedStage(t)
	id, r := s.asked(`{"to":"ann","subject":"the agent's words"}`)
	var op action.Operation
	s.must(json.Unmarshal(r.Full.Operation, &op))
	if action.CommitmentTo(r.Full.Salt, r.Full.Operation) != r.Full.Commitment {
		t.Error("the operation is not the one that the record commits to")
	}
	if sum, err := digest.Binding(id, op, r.Full.Commitment); err != nil || sum != r.Full.Binding {
		t.Errorf("it is bound to %s, and what is shown gives %s (%v)", r.Full.Binding, sum, err)
	}
	var b strings.Builder
	s.must(r.Print(&b, op, false))
	host, port, _ := strings.Cut(s.Proxy.Addr(), ":")
	for _, want := range []string{
		`channel +http`, `sends +POST http://` + s.Proxy.Addr() + `/v1/objects/ann\n`, `to +` + host + ` port ` + port + `, http\n`, `credential +provider`,
		`asked by +process:uid=1000 exe=/usr/bin/agent, process 4711 \(peer_pidfd\)`, `impact +something happens`, `run +run_`, `action +` + string(id),
		`\n    \| \{"text":"the agent's words","to":"ann"\}\n`, `known +Nothing was sent\.`, `not sent +Nobody has decided about it yet\.`, `binding +sha256:`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("%s is not in\n%s", want, b.String())
		}
	}
	if !strings.Contains(s.Export(), `"why":"asked to decide about `+string(r.ApprovalID)+`"`) {
		t.Error("that it was shown is not on record")
	}
	list, err := operator.NewClient(s.socket).Request(t.Context(), string(r.ApprovalID))
	if s.must(err); list.ActionID != id || list.State != action.ApprovalOpen {
		t.Errorf("by its own id it is %+v", list)
	}
	for _, none := range []string{"act_1", "apr_00000000000000000000000000", "act_00000000000000000000000000", "run_00000000000000000000000000"} {
		if _, err := operator.NewClient(s.socket).Request(t.Context(), none); err == nil || !strings.Contains(err.Error(), "NO_SUCH_ACTION") {
			t.Errorf("%s: %v", none, err)
		}
	}
}

// AP-24: whatever an agent says is shown bounded and spelled out, and nothing is left out without a word.
func TestWhatAnAgentSaysIsNeutral(t *testing.T) {
	t.Parallel()
	s := askedStage(t)
	hostile := "\u202egnp.exe\u2066 \u200b" + strings.Repeat("x", 500_000) + "canary-at-the-end"
	args, err := json.Marshal(map[string]string{"to": "ann", "subject": hostile})
	s.must(err)
	_, r := s.asked(string(args))
	var op action.Operation
	s.must(json.Unmarshal(r.Full.Operation, &op))
	for _, all := range []bool{false, true} {
		var b strings.Builder
		s.must(r.Print(&b, op, all))
		text := b.String()
		if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && (!unicode.IsPrint(c) || unicode.Is(unicode.Cf, c)) }); i >= 0 {
			t.Errorf("it is printed with %q", text[i:min(len(text), i+20)])
		}
		said, whole := strings.Contains(text, "MORE, NOT SHOWN"), strings.Contains(text, "canary-at-the-end")
		if said == all || whole != all || !all && len(text) > 10_000 || !strings.Contains(text, `\u{202e}gnp.exe\u{2066}`) {
			t.Errorf("all %t: %d bytes are printed, cut is said %t, the end is there %t", all, len(text), said, whole)
		}
	}
	// A list holds nothing of it.
	status, _ := s.ask(http.MethodGet, "/v1/approvals", "")
	res, err := s.http.Get("http://deed/v1/approvals")
	s.must(err)
	defer res.Body.Close()
	var listed []operator.Request
	s.must(json.NewDecoder(res.Body).Decode(&listed))
	if text, _ := json.Marshal(listed); status != 200 || len(listed) != 1 || strings.Contains(string(text), "gnp") || listed[0].Full != nil {
		t.Errorf("the list is answered %d with %s", status, text)
	}
}

// AP-24: no text whatever gets a character through that does something to a terminal or cannot be seen.
func TestNeutralTextsDoNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\x1b\r\n\t\\\xe2\x80\xae\xc2\x9b")))).Draw(t, "text")
		longest := rapid.IntRange(0, 64).Draw(t, "longest")
		shown, left := operator.Neutral(text, longest, false)
		for _, c := range shown {
			if !unicode.IsPrint(c) || unicode.In(c, unicode.Cf, unicode.Mn, unicode.Zl, unicode.Zp) {
				t.Fatalf("%q is shown as %q, with %U", text, shown, c)
			}
		}
		if left < 0 || left > len(text) || len(text)-left > longest {
			t.Fatalf("of %d bytes and at most %d, %d are left out", len(text), longest, left)
		}
		if whole, none := operator.Neutral(text, len(text), false); none != 0 || !strings.HasPrefix(whole, shown) {
			t.Fatalf("the whole is %q, its beginning %q", whole, shown)
		}
	})
	for text, want := range map[string]string{
		"plain ä 漢 🙂": "plain ä 漢 🙂", "a\nb": `a\u{a}b`, `\u{a}`: `\\u{a}`, "\xff": `\xff`, "\u00a0": `\u{a0}`, "\u3164": `\u{3164}`, "e\u0301": `e\u{301}`,
	} {
		if got, _ := operator.Neutral([]byte(text), 100, false); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// AP-11, API-14: the door brings signed decisions and nothing else, and revokes only what is named with a reason.
func TestTheDoorBringsSignedDecisions(t *testing.T) {
	t.Parallel()
	s := askedStage(t)
	id, r := s.asked(`{"to":"ann"}`)
	path := "/v1/approvals/" + string(r.ApprovalID)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"empty":              {"POST", path, "", 400},
		"no JSON":            {"POST", path, "{", 400},
		"an unknown member":  {"POST", path, `{"action_id":"x","force":true}`, 400},
		"unsigned":           {"POST", path, fmt.Sprintf(`{"action_id":%q,"decision":"approve","approver":"ada"}`, id), 409},
		"signed by a guess":  {"POST", path, fmt.Sprintf(`{"action_id":%q,"decision":"approve","approver":"ada","key":"AA==","signature":"AA=="}`, id), 409},
		"no such request":    {"POST", "/v1/approvals/apr_none", fmt.Sprintf(`{"action_id":%q,"decision":"approve","approver":"ada"}`, id), 409},
		"revoked without":    {"POST", "/v1/revoke", `{}`, 400},
		"revoked for no why": {"POST", "/v1/revoke", fmt.Sprintf(`{"action":%q}`, id), 400},
		"revoked by force":   {"POST", "/v1/revoke", fmt.Sprintf(`{"action":%q,"why":"x","force":true}`, id), 400},
		"by GET":             {"GET", "/v1/revoke", "", 404},
	} {
		if status, answer := s.ask(c.method, c.path, c.body); status != c.status || answer["message"] == "" {
			t.Errorf("%s is answered %d %v, want %d", name, status, answer, c.status)
		}
	}
	if now := s.Stored(id); now.State != action.AwaitingApproval || s.BytesToProvider() != 0 {
		t.Fatalf("it is %s", now.State)
	}
	said := rig.Signed(s.Asked(id), rig.Ada, action.Approve)
	status, err := operator.NewClient(s.socket).Approve(t.Context(), said.Approval, operator.ApprovalDecision{
		ActionID: said.Action, Decision: said.Decision, Approver: said.Approver, Key: said.Signed.Key, Signature: said.Signed.Signature,
	})
	if s.must(err); status.State != action.Completed || s.Effects() != 1 {
		t.Errorf("approved it is %s", status.State)
	}
	second, _ := s.asked(`{"to":"bob"}`)
	done, err := operator.NewClient(s.socket).Revoke(t.Context(), operator.Revoke{Action: second, Why: "no"})
	if s.must(err); len(done.Rejected) != 1 || len(done.Sent) != 0 {
		t.Errorf("revoked: %+v", done)
	}
}
