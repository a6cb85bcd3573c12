package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/lab/provider"
)

// stage is a gateway with the operator's door before it.
type stage struct {
	*rig.Rig
	socket string
	http   *http.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOf(t, rig.Options{})
}

func newStageOf(t *testing.T, o rig.Options) *stage {
	t.Helper()
	s := &stage{Rig: rig.New(t, o)}
	dir, err := os.MkdirTemp("", "deed-o-") // a socket's path is short
	s.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.socket = filepath.Join(dir, "operator.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket, Net: "unix"})
	s.must(err)
	s.must(os.Chmod(s.socket, 0o600))
	door := operator.New(operator.Options{
		Gateway: s.Gateway, Records: s.Store, NotFound: store.ErrNotFound, RotateContentKey: s.Store.RotateContentKey, Log: slog.New(slog.DiscardHandler),
		Status: func(context.Context) (operator.Status, error) { return operator.Status{Running: true}, nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- door.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the door ended with %v", err)
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}
	s.http = &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	return s
}

func (s *stage) must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// lostMail is a mail of which nobody knows whether it went out.
func (s *stage) lostMail(to string) action.ID {
	s.T.Helper()
	s.Break(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	a := s.Call("send_email", fmt.Sprintf(`{"to":%q}`, to)).Key("run", 1, "toolu_"+to).Do()
	if a.Action.State != action.Unknown || a.Action.Recovery != action.ReviewRequired {
		s.T.Fatalf("the mail is %s, %s", a.Action.State, a.Action.Recovery)
	}
	return a.Action.ID
}

// ask makes one request and decodes the answer.
func (s *stage) ask(method, path, body string) (int, map[string]any) {
	s.T.Helper()
	req, err := http.NewRequestWithContext(s.T.Context(), method, "http://elsewhere.example"+path, strings.NewReader(body))
	s.must(err)
	res, err := s.http.Do(req)
	s.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	s.must(err)
	if allow := res.Header.Get("Access-Control-Allow-Origin"); allow != "" {
		s.T.Errorf("other origins are let in: %s", allow)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil && !bytes.HasPrefix(text, []byte("[")) {
		s.T.Fatalf("%s %s is answered %d with %q", method, path, res.StatusCode, text)
	}
	return res.StatusCode, answer
}

func (s *stage) seen(id action.ID) string {
	s.T.Helper()
	c, err := operator.NewClient(s.socket).Show(s.T.Context(), id)
	s.must(err)
	return c.Journal.Hash
}

func (s *stage) decide(id action.ID, body string) (int, map[string]any) {
	return s.ask(http.MethodPost, "/v1/actions/"+string(id)+"/review", strings.ReplaceAll(body, "SEEN", s.seen(id)))
}

// UN-27, case 014: nothing clears an unknown outcome without a decision, its evidence, and a look at what is decided on.
func TestOnlyAWholeDecisionCounts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.lostMail("a")
	for _, c := range []struct {
		name, body string
		status     int
		code       action.Code
	}{
		{"empty", ``, 400, action.CodeInvalidArguments},
		{"no JSON", `{"decision":`, 400, action.CodeInvalidArguments},
		{"two values", `{} {}`, 400, action.CodeInvalidArguments},
		{"a list", `[]`, 400, action.CodeInvalidArguments},
		{"wrong type", `{"decision":1}`, 400, action.CodeInvalidArguments},
		{"unknown member", `{"decision":"abandon","why":"x","seen":"SEEN","force":true}`, 400, action.CodeInvalidArguments},
		{"too large", `{"why":"` + strings.Repeat("x", 1<<20) + `"}`, 400, action.CodeInvalidArguments},
		{"no decision", `{"seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"unknown decision", `{"decision":"forget","why":"x","seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"happened without evidence", `{"decision":"happened","why":"x","seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"happened with blank evidence", `{"decision":"happened","evidence":" \n","seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"absent without evidence", `{"decision":"absent","why":"x","seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"redo without reason", `{"decision":"redo","evidence":"x","seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"abandon without reason", `{"decision":"abandon","seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"long evidence", `{"decision":"absent","evidence":"` + strings.Repeat("x", action.MaxReviewText+1) + `","seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"result with absent", `{"decision":"absent","evidence":"x","result":{},"seen":"SEEN"}`, 409, action.CodeReviewRefused},
		{"nothing seen", `{"decision":"abandon","why":"x"}`, 409, action.CodeReviewRefused},
		{"another state seen", `{"decision":"abandon","why":"x","seen":"` + strings.Repeat("0", 64) + `"}`, 409, action.CodeReviewRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer := s.decide(id, c.body)
			if status != c.status || answer["code"] != string(c.code) || answer["message"] == "" || answer["action_id"] != string(id) {
				t.Errorf("answered %d %v, want %d %s", status, answer, c.status, c.code)
			}
		})
	}
	if a := s.Stored(id); a.State != action.Unknown || s.Requests() != 1 {
		t.Errorf("it is %s after %d requests", a.State, s.Requests())
	}
	if strings.Contains(s.Export(), `"review"`) {
		t.Error("a refused decision is on record")
	}
}

func TestWhatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const none = "act_00000000000000000000000000"
	for _, c := range []struct {
		method, path, body string
		status             int
		code               action.Code
	}{
		{"GET", "/v1/actions/" + none, "", 404, action.CodeNoSuchAction},
		{"GET", "/v1/actions/act_1", "", 404, action.CodeNoSuchAction},
		{"GET", "/v1/actions/%00", "", 404, action.CodeNoSuchAction},
		{"POST", "/v1/actions/" + none + "/review", `{"decision":"redo","why":"x","seen":"y"}`, 404, action.CodeNoSuchAction},
		{"POST", "/v1/actions/" + none + "/undo", "", 404, action.CodeNoSuchAction},
		{"GET", "/v1/actions/" + none + "/review", "", 404, action.CodeInvalidArguments},
		{"DELETE", "/v1/review", "", 404, action.CodeInvalidArguments},
		{"POST", "/v1/vault/unlock", "a passphrase", 404, action.CodeInvalidArguments}, // this gateway has no vault to open
		{"POST", "/v1/vault/lock", "", 404, action.CodeInvalidArguments},
		{"GET", "/v1/vault", "", 404, action.CodeInvalidArguments},
		{"GET", "/v1/vault/unlock", "", 404, action.CodeInvalidArguments},
		{"OPTIONS", "/v1/review", "", 404, action.CodeInvalidArguments},
		{"GET", "/mcp", "", 404, action.CodeInvalidArguments},
		{"GET", "/", "", 404, action.CodeInvalidArguments},
	} {
		if status, answer := s.ask(c.method, c.path, c.body); status != c.status || answer["code"] != string(c.code) {
			t.Errorf("%s %s is answered %d %v, want %d %s", c.method, c.path, status, answer, c.status, c.code)
		}
	}
}

// UN-27: a decision is made once, and it stands in the journal with who made it, why, and what had been seen.
func TestASecondDecisionIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.lostMail("a")
	before := s.seen(id)
	body := `{"decision":"happened","evidence":"mail 4711 in the outbox","why":"looked","result":{"id":"m_4711"},"seen":"SEEN"}`
	if status, answer := s.decide(id, body); status != 200 || answer["state"] != "completed" || answer["settled_by"] != action.SettledByReviewer {
		t.Fatalf("answered %d %v", status, answer)
	}
	for _, second := range []string{body, strings.Replace(body, "SEEN", before, 1), `{"decision":"redo","why":"again","seen":"SEEN"}`} {
		if status, answer := s.decide(id, second); status != 409 || answer["code"] != string(action.CodeReviewRefused) {
			t.Errorf("a second decision is answered %d %v", status, answer)
		}
	}
	again := s.Call("send_email", `{"to":"a"}`).Key("run", 1, "toolu_a").Do()
	if again.Action.State != action.Completed || string(again.Result) != `{"id":"m_4711"}` || s.Requests() != 1 {
		t.Errorf("the agent's call is answered %s, %s, after %d requests", again.Action.State, again.Result, s.Requests())
	}
	for _, e := range s.EventsOf(id) {
		if e.Text("review.decision") == "" {
			continue
		}
		who := e.Text("review.reviewer")
		if !strings.HasPrefix(who, fmt.Sprintf("process:uid=%d", os.Geteuid())) || e.Text("review.why") != "looked" ||
			e.Text("review.evidence") != "mail 4711 in the outbox" || e.Text("review.seen_hash") != before {
			t.Errorf("the journal has %v", e["review"])
		}
		return
	}
	t.Errorf("no decision is on record: %v", rig.Kinds(s.EventsOf(id)))
}

// UN-27: of 20 who decide at once to send again, one is heard, and one more request goes out.
func TestOneOfManyRedosSends(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.lostMail("a")
	body := fmt.Sprintf(`{"decision":"redo","why":"nothing arrived","seen":%q}`, s.seen(id))
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for range 20 {
		wg.Go(func() {
			status, _ := s.ask(http.MethodPost, "/v1/actions/"+string(id)+"/review", body)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
	}
	wg.Wait()
	if answers[200] != 1 || answers[409] != 19 || s.Requests() != 2 {
		t.Errorf("answered %v with %d requests at the target, want one 200 and 2 requests", answers, s.Requests())
	}
	if a := s.Stored(id); a.State != action.Completed || a.Attempt != 2 {
		t.Errorf("it is %s after %d attempts", a.State, a.Attempt)
	}
}

// What is shown is enough to decide on and holds nothing that was said: no argument, no body, no secret.
func TestTheCaseHoldsNoContent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.lostMail("canary-recipient")
	for _, path := range []string{"/v1/actions/" + string(id), "/v1/review", "/v1/status"} {
		res, err := s.http.Get("http://deed" + path)
		s.must(err)
		text, err := io.ReadAll(res.Body)
		s.must(err)
		s.must(res.Body.Close())
		if strings.Contains(string(text), "canary") {
			t.Errorf("%s shows %s", path, text)
		}
	}
	c, err := operator.NewClient(s.socket).Show(t.Context(), id)
	s.must(err)
	if c.Target != "POST http://"+s.Proxy.Addr()+"/v1/objects/{to}" || c.Credential != "provider" || len(c.Attempts) != 1 || *c.Attempts[0].Bytes == 0 ||
		len(c.Choices) != len(action.ReviewDecisions) || len(c.Known) == 0 || len(c.NotKnown) == 0 {
		t.Errorf("the case is %+v", c)
	}
}

// ST-13, AU-27: the door shows content for a reason, and only then.
func TestContentIsShownForAReason(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.Call("send_email", `{"to":"canary-recipient"}`).Key("run", 1, "toolu_1").Do().Action.ID
	path := "/v1/actions/" + string(id) + "/content"
	for body, status := range map[string]int{
		``: 400, `{}`: 400, `{"why":" "}`: 400, `{"why":1}`: 400, `{"why":"x","force":true}`: 400, `[]`: 400,
		`{"why":"` + strings.Repeat("x", action.MaxReviewText+1) + `"}`: 400,
	} {
		got, answer := s.ask(http.MethodPost, path, body)
		text, _ := json.Marshal(answer)
		if got != status || answer["code"] != string(action.CodeInvalidArguments) || strings.Contains(string(text), "canary") || !strings.Contains(string(text), "othing was shown") {
			t.Errorf("%.40s is answered %d %s", body, got, text)
		}
	}
	if got, answer := s.ask(http.MethodGet, path, ""); got != 404 {
		t.Errorf("GET is answered %d %v", got, answer)
	}
	if got, answer := s.ask(http.MethodPost, "/v1/actions/act_00000000000000000000000000/content", `{"why":"x"}`); got != 404 || answer["code"] != string(action.CodeNoSuchAction) {
		t.Errorf("an action that is not there: %d %v", got, answer)
	}
	if strings.Contains(s.Export(), "content.read") {
		t.Error("a refused reading is on record")
	}
	c, err := operator.NewClient(s.socket).Content(t.Context(), id, operator.Reading{Why: "the recipient asks"})
	if err != nil || !strings.Contains(string(c.Requested), "canary-recipient") || !strings.Contains(c.Resolved.URL, "canary-recipient") || c.ReadAt == "" {
		t.Errorf("got %+v, %v", c, err)
	}
	reads := 0
	for _, e := range s.EventsOf(id) {
		if e.Kind() != string(action.ContentReadKind) {
			continue
		}
		reads++
		if e.Text("read.why") != "the recipient asks" || !strings.HasPrefix(e.Text("actor.identity"), fmt.Sprintf("uid=%d", os.Geteuid())) {
			t.Errorf("on record is %v", e)
		}
	}
	if reads != 1 || strings.Contains(s.Export(), "canary") {
		t.Errorf("%d readings are on record", reads)
	}
}

// A new content key is made at the door and named there; content that the old one sealed is still shown.
func TestTheContentKeyIsRotatedAtTheDoor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.lostMail("a")
	client := operator.NewClient(s.socket)
	first, err := client.RotateContentKey(t.Context())
	s.must(err)
	second, err := client.RotateContentKey(t.Context())
	s.must(err)
	if !strings.HasPrefix(first.ID, "ck_") || first == second {
		t.Errorf("the keys are %s and %s", first.ID, second.ID)
	}
	if c, err := client.Content(t.Context(), id, operator.Reading{Why: "x"}); err != nil || c.Requested == nil {
		t.Errorf("content of before: %+v, %v", c, err)
	}
	if status, _ := s.ask(http.MethodGet, "/v1/content-key", ""); status != 404 {
		t.Errorf("GET is answered %d", status)
	}
}
