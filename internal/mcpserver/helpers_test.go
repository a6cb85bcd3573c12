package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/lab/provider"
)

const mail = `{"to":"ann"}`

// inBothEras runs a story with a client of each era, and over a byte stream.
func inBothEras(t *testing.T, o rig.Options, story func(t *testing.T, r *rig.Rig, s *mcp.ClientSession)) {
	t.Helper()
	for era, version := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, o)
			story(t, r, connect(t, r.Door().URL, rig.TokenA, version))
		})
	}
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		r := rig.New(t, o)
		story(t, r, r.Stream(r.Door(), rig.Agent("agent", 7)))
	})
}

func of(id action.ID) string { return fmt.Sprintf(`{"action_id":%q}`, id) }

// API-18, API-09: deed's own tools stand beside those of the contracts, on every transport, and say that they only read. The
// order is the same each time, so that a model's prompt does not change.
func TestOwnToolsAreOfferedBesideTheContracts(t *testing.T) {
	inBothEras(t, rig.Options{}, func(t *testing.T, _ *rig.Rig, s *mcp.ClientSession) {
		for range 2 {
			list, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
				if !action.HelperTool(tool.Name) {
					continue
				}
				a := tool.Annotations
				if !a.ReadOnlyHint || !a.IdempotentHint || *a.DestructiveHint || *a.OpenWorldHint {
					t.Errorf("%s is announced as %+v", tool.Name, a)
				}
			}
			if want := []string{"action_status", "action_wait", "charge", "get_echo", "send_email"}; !slices.Equal(names, want) {
				t.Errorf("the tools are %v, want %v", names, want)
			}
		}
	})
}

// API-09, UN-23: the status of an action is what a call that attaches would be told, the stored result included. Nothing is
// sent for it and no call is on record, and a result that is read counts as handed over.
func TestStatusOfAnActionShowsItsResult(t *testing.T) {
	inBothEras(t, rig.Options{}, func(t *testing.T, r *rig.Rig, s *mcp.ClientSession) {
		first := status(t, call(t, s, "charge", charge, nil))
		r.Settled()
		before := len(r.Events())
		for _, args := range []string{of(first.ActionID), fmt.Sprintf(`{"execution_id":%q}`, first.ActionID)} {
			got := call(t, s, action.ToolStatus, args, nil)
			st := status(t, got)
			if got.IsError || st.ActionID != first.ActionID || st.State != action.Completed || !st.Replayed || st.RepeatOf != first.RepeatOf {
				t.Errorf("%s: got %+v", args, st)
			}
			if !bytes.Contains(encoded(t, got), r.Provider.Effects()[0].Body[:20]) && !bytes.Contains(encoded(t, got), []byte(`"ch_`)) {
				t.Errorf("the result is not shown: %s", encoded(t, got))
			}
			if !strings.Contains(st.Message, "Nothing new was done; this is "+string(first.ActionID)) {
				t.Errorf("it reads %q", st.Message)
			}
		}
		r.Settled()
		for _, e := range r.Events()[before:] {
			if strings.HasPrefix(e.Kind(), "call.") {
				t.Errorf("a look is on record as %s", e.Kind())
			}
		}
		if d := r.Stored(first.ActionID).Delivery; d != action.DeliveryUnconfirmed {
			t.Errorf("delivery is %s", d)
		}
		if r.Effects() != 1 || r.Requests() != 1 || len(r.Actions()) != 1 {
			t.Errorf("%d effects, %d requests, %d actions", r.Effects(), r.Requests(), len(r.Actions()))
		}
	})
}

func encoded(t *testing.T, r *mcp.CallToolResult) []byte {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// case 001, API-20: the wait for an action that another call began ends when the target has answered, and not later.
func TestWaitEndsWhenTheActionDoes(t *testing.T) {
	inBothEras(t, rig.Options{}, func(t *testing.T, r *rig.Rig, s *mcp.ClientSession) {
		r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "charge", Arguments: json.RawMessage(charge)})
		}()
		r.AwaitEffects(1)
		id := r.Only().ID
		at := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { r.Break() })
		got := call(t, s, action.ToolWait, of(id), nil)
		if st := status(t, got); got.IsError || st.State != action.Completed || st.ActionID != id {
			t.Errorf("got %+v", st)
		}
		if took := time.Since(at); took > 4*time.Second { // the target's time is over after 5 s, the wait after 20 s
			t.Errorf("it waited %s for an action that ended at once", took)
		}
		<-answered
		if r.Effects() != 1 || r.Requests() != 1 {
			t.Errorf("%d effects, %d requests", r.Effects(), r.Requests())
		}
	})
}

// case 002, API-20: a call gives up on waiting and is told how to ask. A wait that is over says how the action stands, and
// stops nothing. More than the gateway allows is what it allows.
func TestWaitThatIsOverSaysHowItStands(t *testing.T) {
	inBothEras(t, rig.Options{Wait: 400 * time.Millisecond, Timeout: "20s"}, func(t *testing.T, r *rig.Rig, s *mcp.ClientSession) {
		r.Break(provider.Fault{Kind: provider.CommitThenHang, Times: 1})
		first := status(t, call(t, s, "charge", charge, nil))
		if first.State != action.Dispatched || first.Code != action.CodeInProgress || !slices.Contains(first.Next, action.NextStatus) {
			t.Fatalf("the call was told %+v", first)
		}
		for seconds, least := range map[string]time.Duration{"0": 0, "0.2": 200 * time.Millisecond, "1e300": 400 * time.Millisecond} {
			began := time.Now()
			got := call(t, s, action.ToolWait, fmt.Sprintf(`{"action_id":%q,"seconds":%s}`, first.ActionID, seconds), nil)
			took := time.Since(began)
			if st := status(t, got); st.State != action.Dispatched || st.Code != action.CodeInProgress || !got.IsError {
				t.Errorf("%s seconds: got %+v", seconds, st)
			}
			if took < least || took > least+3*time.Second {
				t.Errorf("%s seconds took %s", seconds, took)
			}
		}
		r.Break()
		last := first
		for range 20 {
			if last = status(t, call(t, s, action.ToolWait, of(first.ActionID), nil)); last.State == action.Completed {
				break
			}
		}
		if last.State != action.Completed || r.Effects() != 1 || r.Requests() != 1 {
			t.Errorf("afterwards: %+v, %d effects, %d requests", last, r.Effects(), r.Requests())
		}
	})
}

// UN-21: there is nothing to wait for where only a person can settle it.
func TestWaitDoesNotWaitForAPerson(t *testing.T) {
	inBothEras(t, rig.Options{}, func(t *testing.T, r *rig.Rig, s *mcp.ClientSession) {
		r.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
		first := status(t, call(t, s, "send_email", mail, nil))
		began := time.Now()
		st := status(t, call(t, s, action.ToolWait, of(first.ActionID), nil))
		if st.State != action.Unknown || st.Recovery != action.ReviewRequired || time.Since(began) > 5*time.Second {
			t.Errorf("got %+v after %s", st, time.Since(began))
		}
		if r.Effects() != 1 || r.Requests() != 1 {
			t.Errorf("%d effects, %d requests", r.Effects(), r.Requests())
		}
	})
}

// API-09, API-16: somebody else's action is answered like one that does not exist, to the letter.
func TestAnActionOfSomebodyElseIsNoAction(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	d := r.Door()
	mine := status(t, call(t, connect(t, d.URL, rig.TokenA, eras["modern"]), "charge", charge, nil))
	for name, s := range map[string]*mcp.ClientSession{
		"legacy": connect(t, d.URL, rig.TokenB, eras["legacy"]), "modern": connect(t, d.URL, rig.TokenB, eras["modern"]),
		"stream": r.Stream(d, rig.Agent("agent", 7)),
	} {
		for _, tool := range []string{action.ToolStatus, action.ToolWait} {
			began := time.Now()
			foreign := call(t, s, tool, of(mine.ActionID), nil)
			none := call(t, s, tool, of("act_00000000000000000000000000"), nil)
			if got, want := encoded(t, foreign), encoded(t, none); !bytes.Equal(got, want) {
				t.Errorf("%s, %s: told apart:\n%s\n%s", name, tool, got, want)
			}
			if st := status(t, foreign); !foreign.IsError || st.Code != action.CodeNoSuchAction || st.Retryable || st.ActionID != "" {
				t.Errorf("%s, %s: got %+v", name, tool, st)
			}
			if time.Since(began) > 5*time.Second {
				t.Errorf("%s, %s: waited for nothing", name, tool)
			}
		}
	}
	if d := r.Stored(mine.ActionID).Delivery; d == action.DeliveryInterrupted {
		t.Errorf("delivery is %s", d)
	}
}

// API-09: where strangers share a token, only the run that was named shows which of them asks.
func TestHoldersOfASharedTokenSeeTheirOwnRunOnly(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	url := r.Door().URL
	s := connect(t, url, rig.TokenShared, eras["modern"])
	named := status(t, call(t, s, "charge", charge, mcp.Meta{"dev.deed/run": "mine"}))
	nameless := status(t, call(t, s, "charge", `{"amount":1,"customer":"cus_7"}`, nil))
	for _, c := range []struct {
		name string
		id   action.ID
		run  mcp.Meta
		seen bool
	}{
		{"own run", named.ActionID, mcp.Meta{"dev.deed/run": "mine"}, true},
		{"other run", named.ActionID, mcp.Meta{"dev.deed/run": "another"}, false},
		{"no run", named.ActionID, nil, false},
		{"nameless, no run", nameless.ActionID, nil, false},
		{"nameless, some run", nameless.ActionID, mcp.Meta{"dev.deed/run": "mine"}, false},
	} {
		st := status(t, call(t, s, action.ToolStatus, of(c.id), c.run))
		if seen := st.ActionID == c.id; seen != c.seen || !seen && st.Code != action.CodeNoSuchAction {
			t.Errorf("%s: got %+v", c.name, st)
		}
	}
	if runs := len(slices.DeleteFunc(r.Events(), func(e rig.Event) bool { return e.Kind() != "run.started" })); runs != 2 {
		t.Errorf("%d runs were opened, want 2: looking opens none", runs)
	}
}

// API-07: bad input of deed's own tools is a typed answer, and leaves the door usable.
func TestBadInputOfOwnToolsIsTyped(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{})
	s := r.Stream(r.Door(), rig.Agent("agent", 7)) // over HTTP the SDK's client itself stumbles over 1e999
	const id = "act_00000000000000000000000000"
	for _, args := range []string{
		`{}`, `{"action_id":7}`, `{"action_id":null}`, `{"action_id":""}`, `{"action_id":"act_1"}`, `{"action_id":["` + id + `"]}`,
		`{"action_id":"int_00000000000000000000000000"}`, `{"action_id":"` + id + `\u0000"}`, `{"action_id":"` + strings.Repeat("a", 1<<20) + `"}`,
		`{"action_id":"` + id + `","execution_id":"act_00000000000000000000000001"}`, `{"action_id":"` + id + `","action_id":"` + id + `"}`,
		`{"ACTION_ID":"` + id + `"}`, `{"action_id":"` + id + `","other":1}`,
		`{"action_id":"` + id + `","seconds":-1}`, `{"action_id":"` + id + `","seconds":"5"}`, `{"action_id":"` + id + `","seconds":null}`,
		`{"action_id":"` + id + `","seconds":1e999}`, `{"action_id":"' or 1=1 --"}`,
	} {
		for _, tool := range []string{action.ToolStatus, action.ToolWait} {
			got := call(t, s, tool, args, nil)
			if st := status(t, got); !got.IsError || st.Code != action.CodeInvalidArguments || len(st.Next) == 0 {
				t.Errorf("%s %.80s: got %s", tool, args, encoded(t, got))
			}
		}
	}
	if st := status(t, call(t, s, action.ToolStatus, `{"action_id":"`+id+`","execution_id":"`+id+`"}`, nil)); st.Code != action.CodeNoSuchAction {
		t.Errorf("one value under both names: got %+v", st)
	}
	if st := status(t, call(t, s, "charge", charge, nil)); st.State != action.Completed || r.Effects() != 1 {
		t.Errorf("after the bad input: %+v", st)
	}
}

// UN-22, case 005: a model that makes the same call again on every plain error, each time under a new id, at a provider that
// commits and drops the answer. It is told the state each time, and the provider's ledger has one effect.
func TestAModelThatRetriesOnEveryErrorHasOneEffect(t *testing.T) {
	for _, tool := range []struct{ name, args string }{{"send_email", mail}, {"charge", charge}} {
		t.Run(tool.name, func(t *testing.T) {
			inBothEras(t, rig.Options{}, func(t *testing.T, r *rig.Rig, s *mcp.ClientSession) {
				r.Break(provider.Fault{Kind: provider.CommitThenDrop})
				var first action.ID
				for n := range 10 {
					got := call(t, s, tool.name, tool.args, nil) // the SDK numbers each request anew
					st := status(t, got)
					if first == "" {
						first = st.ActionID
					}
					if st.ActionID != first || st.State == "" || len(st.Next) == 0 || st.State == action.Failed {
						t.Fatalf("call %d: an answer without its state: %s", n+1, encoded(t, got))
					}
					if !got.IsError {
						break
					}
					if slices.Contains(st.Next, action.NextRetry) || st.Message == "" || !strings.Contains(st.Message, "may have") {
						t.Errorf("call %d was told %v %q", n+1, st.Next, st.Message)
					}
				}
				if r.Effects() != 1 || len(r.Actions()) != 1 {
					t.Errorf("%d effects, %d actions", r.Effects(), len(r.Actions()))
				}
			})
		})
	}
}
