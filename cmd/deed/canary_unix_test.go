//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/journal"
)

// What is planted, and where. Each has letters that hex has not, and is found by either of its halves.
const (
	canaryEnv     = "zqenvsecret-Wk3vTnR8mXyJ2pLs"    // a credential, from the environment
	canaryFile    = "zqfilesecret-Hq7wBxN4tGzK9rVm"   // a credential, from a file
	canaryHeader  = "zqagentheader-Pz5kMwY2hUjX8tQn"  // a header of the agent's own request
	canaryPath    = "zqpathargument-Jx6nVrT3kWqZ7yHp" // arguments, in each place of the request
	canaryQuery   = "zqqueryargument-Ty8rKzW4nMvX2jGq"
	canarySent    = "zqheaderargument-Xw3mPjR9vYkT6nZh"
	canaryBody    = "zqbodyargument-Nv4tWzG7xKyQ2mRj"
	canaryWrong   = "zqrefusedargument-Ry2xTwK8jVnP5zMh" // an argument that does not fit, so no action is made of it
	canaryAnswer  = "zqanswerbody-Kz9wXtM3rJvY6nPq"      // what the target answers
	canaryReplied = "zqanswerheader-Gw5vNyX8kTzR2jHm"
	canaryError   = "zqerrorbody-Vx7kZrW4mTqN9yJp"
	canaryPlace   = "zqlocation-Mt3yRvK6wXnZ8jGh"
	canaryFound   = "zqlookupanswer-Yr8nJwT5xVzM2kQp"
	canaryInHand  = "zqinhandargument-Wn4zGxY7vRkT3mJq" // under way when the process dies
)

const canaryTools = `tool: plant
description: A request with arguments everywhere.
input:
  type: object
  required: [kind, path, query, header, body, number]
  properties:
    kind: {type: string}
    path: {type: string}
    query: {type: string}
    header: {type: string}
    body: {type: string}
    number: {type: integer}
http:
  method: POST
  url: TARGET/v1/{kind}/{path}{?query}
  credential: fromenv
  private: [127.0.0.0/8]
  headers: {X-Note: "${args.header}"}
  json: {text: "${args.body}", n: "${args.number}", metadata: {}}
metadata: {json: /metadata/idem_key}
on_lost_response: {class: status_queryable, attach_for: 15m, evidence: the target of this test}
lookup:
  request: {method: GET, url: "TARGET/v1/lookup?key={deed.idem_key}", credential: fromfile}
  found: ${status == 200 && body.found}
  authoritative: true
  settle: 100ms
done_when: ${status == 201}
no_effect_when: ${status == 400}
attempts: 2
timeout: 1s
keep_result: 30d
`

const canaryCredentials = `credentials:
  - ref: fromenv
    kind: bearer
    hosts: [HOST]
    insecure_loopback: true
    env: DEED_DEMO_SECRET
  - ref: fromfile
    kind: header
    header: X-Api-Key
    hosts: [HOST]
    insecure_loopback: true
    file: secret.txt
`

// canaryTarget is a real server on loopback that gives back what it should not: canaries of its own in every part of an answer,
// and the credential that it was sent.
type canaryTarget struct {
	*httptest.Server
	hang           chan struct{}
	hung           atomic.Bool
	sawEnv, sawKey atomic.Int64
	sawAll         atomic.Bool
}

func newCanaryTarget(t *testing.T) *canaryTarget {
	c := &canaryTarget{hang: make(chan struct{})}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(func() { close(c.hang); c.CloseClientConnections(); c.Close() })
	return c
}

func (c *canaryTarget) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Header.Get("Authorization") == "Bearer "+canaryEnv {
		c.sawEnv.Add(1)
	}
	if strings.Contains(r.URL.String(), canaryPath) && strings.Contains(r.URL.String(), canaryQuery) && r.Header.Get("X-Note") == canarySent &&
		bytes.Contains(body, []byte(canaryBody)) {
		c.sawAll.Store(true)
	}
	w.Header().Set("X-Reply", canaryReplied)
	w.Header().Set("Set-Cookie", "session="+canaryReplied)
	w.Header().Set("Content-Type", "application/json")
	switch strings.Split(r.URL.Path, "/")[2] {
	case "works":
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"id":%q,"echo":%q}`, canaryAnswer, r.Header.Get("Authorization"))
	case "refuses":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q,"you_sent":%q}`, canaryError, r.Header.Get("Authorization"))
	case "breaks":
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "panic: %s %s\n%s", canaryError, r.Header.Get("Authorization"), body)
	case "moves":
		w.Header().Set("Location", "https://elsewhere.example/?k="+canaryPlace)
		w.WriteHeader(http.StatusFound)
	case "drops":
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	case "hangs":
		c.hung.Store(true)
		<-c.hang
	case "lookup":
		if r.Header.Get("X-Api-Key") == canaryFile {
			c.sawKey.Add(1)
		}
		fmt.Fprintf(w, `{"found":true,"key":%q,"text":%q,"echo":%q}`, r.URL.Query().Get("key"), canaryFound, r.Header.Get("X-Api-Key"))
	}
}

// canaryForms are the spellings that a value could leak in.
func canaryForms(value string) map[string][]byte {
	forms := map[string][]byte{}
	for part, text := range map[string]string{"first half": value[:len(value)/2], "second half": value[len(value)/2:]} {
		forms[part] = []byte(text)
		forms[part+" in hex"] = []byte(hex.EncodeToString([]byte(text)))
		forms[part+" in upper hex"] = []byte(strings.ToUpper(hex.EncodeToString([]byte(text))))
		forms[part+" escaped"] = []byte(url.QueryEscape(text))
		for shift := range 3 { // base64 looks different at each offset; the edges depend on the neighbours
			whole := base64.StdEncoding.EncodeToString(append(make([]byte, shift), text...))
			forms[fmt.Sprint(part, " in base64 at ", shift)] = []byte(whole[4*((shift+2)/3) : len(whole)-4])
		}
	}
	return forms
}

var canaryValues = map[string]string{
	"the credential from the environment": canaryEnv, "the credential from a file": canaryFile, "the agent's header": canaryHeader,
	"the path argument": canaryPath, "the query argument": canaryQuery, "the header argument": canarySent, "the body argument": canaryBody,
	"the refused argument": canaryWrong, "the answer": canaryAnswer, "the answer's header": canaryReplied, "the error body": canaryError,
	"the redirect": canaryPlace, "the look-up's answer": canaryFound, "the argument under way": canaryInHand,
}

// canarySweep wants none of the values in the text.
func canarySweep(t *testing.T, where string, text []byte, values map[string]string) {
	t.Helper()
	for name, value := range values {
		for form, bytesOf := range canaryForms(value) {
			if at := bytes.Index(text, bytesOf); at >= 0 {
				t.Errorf("%s is in %s (%s, at byte %d): %q", name, where, form, at, text[max(0, at-60):min(len(text), at+20)])
				break
			}
		}
	}
}

// sweepDaemon looks at everything that a gateway leaves behind or shows to people without a reason.
func (d *daemon) sweepDaemon(when string, values map[string]string) {
	d.t.Helper()
	canarySweep(d.t, "the log, "+when, d.stderr.Bytes(), values)
	files := 0
	d.must(filepath.WalkDir(d.data(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		canarySweep(d.t, filepath.Base(path)+", "+when, data, values)
		return nil
	}))
	if files < 4 {
		d.t.Errorf("only %d files were looked at", files)
	}
	export := d.export()
	canarySweep(d.t, "the export, "+when, export, values)
	if found, err := journal.Verify(bytes.NewReader(export)); err != nil || found.Bad != nil || found.RecordsChecked < 10 {
		d.t.Errorf("the export: %+v, %v", found, err)
	}
}

func (c *canaryTarget) daemon(t *testing.T) *daemon {
	d := newDaemon(t, strings.ReplaceAll(canaryTools, "TARGET", c.URL))
	config := filepath.Join(d.dir, "config")
	d.must(os.WriteFile(filepath.Join(config, "credentials.yaml"), []byte(strings.ReplaceAll(canaryCredentials, "HOST", c.Listener.Addr().String())), 0o600))
	d.must(os.WriteFile(filepath.Join(config, "secret.txt"), []byte(canaryFile), 0o600))
	return d
}

func (d *daemon) plant(ctx context.Context, kind, path string) (action.Status, bool) {
	args := fmt.Sprintf(`{"kind":%q,"path":%q,"query":%q,"header":%q,"body":%q,"number":1}`, kind, path, canaryQuery, canarySent, canaryBody)
	return d.callWith(ctx, "plant", args, kind, http.Header{ // User-Agent is on record on purpose: it says which client it was
		"X-Agent-Secret": {canaryHeader}, "Cookie": {"c=" + canaryHeader}, "Referer": {"http://a.example/" + canaryHeader},
	})
}

// AU-25, AU-27, VA-01, VA-08, SS-06, TR-30: secrets and content are planted wherever they can enter the real program: in both
// kinds of credential, in the agent's request, in every place of an argument, in answers, errors, redirects, look-ups and
// in a request that is under way when the process dies of a signal with a dump of its stacks. They are in no byte of
// the data directory (database, WAL, keys, tokens), no export, no log line, no metric and nothing that people are
// shown without a reason, neither while it runs nor after the crash nor after recovery. Arguments and answers are in the sealed
// content, and credentials are not even there.
func TestNothingThatWasPlantedComesOut(t *testing.T) {
	t.Parallel()
	target := newCanaryTarget(t)
	d := target.daemon(t)
	values := map[string]string{"the agent's token": d.token}
	for name, value := range canaryValues {
		values[name] = value
	}
	env := []string{"DEED_DEMO_SECRET=" + canaryEnv, "DEED_LOG_LEVEL=debug", "GOTRACEBACK=all"}
	d.start(built.deed, env...)
	for _, kind := range []string{"works", "refuses", "breaks", "moves", "drops"} {
		if _, ok := d.plant(t.Context(), kind, canaryPath); !ok {
			t.Errorf("%s: no answer", kind)
		}
	}
	for _, args := range []string{
		`{"kind":"works","path":"a","query":"b","header":"c","body":"d","number":"` + canaryWrong + `"}`, `{"` + canaryWrong + `":1}`, `"` + canaryWrong + `"`,
	} {
		_, _ = d.call(t.Context(), "plant", args, "")
	}
	if !target.sawAll.Load() || target.sawEnv.Load() < 5 {
		t.Fatalf("the target saw all arguments: %t, the credential %d times; want what was planted", target.sawAll.Load(), target.sawEnv.Load())
	}
	for deadline := time.Now().Add(20 * time.Second); target.sawKey.Load() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the target was never asked with the credential from a file")
		}
	}
	d.sweepDaemon("while it runs", values)
	canarySweep(t, "the metrics", []byte(d.metrics()), values)
	d.sweepCommands(values)

	// A request is in its hands when it dies.
	lost := make(chan struct{})
	go func() { defer close(lost); _, _ = d.plant(context.Background(), "hangs", canaryInHand) }()
	for deadline := time.Now().Add(10 * time.Second); !target.hung.Load(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the request did not arrive")
		}
	}
	d.must(d.cmd.Process.Signal(syscall.SIGQUIT))
	_ = d.cmd.Wait()
	d.cmd = nil
	<-lost
	if !bytes.Contains(d.stderr.Bytes(), []byte("SIGQUIT")) || !bytes.Contains(d.stderr.Bytes(), []byte("goroutine ")) {
		t.Errorf("it left no dump of its stacks:\n%s", d.stderr.String())
	}
	d.sweepDaemon("after the crash", values)

	d.start(built.deed, env...)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		open := 0
		for _, a := range d.actions() {
			if !a.State.Final() && !a.Abandoned && a.Recovery != action.ReviewRequired {
				open++
			}
		}
		if open == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d actions are open", open)
		}
	}
	d.sweepDaemon("after recovery", values)
	d.stop()
	d.sweepDaemon("after the end", values)

	// That the sweep had something to find: it is all there, sealed. Credentials are not.
	contents := d.contents()
	secrets := map[string]string{"the credential from the environment": canaryEnv, "the credential from a file": canaryFile, "the agent's token": d.token,
		"the agent's header": canaryHeader, "the refused argument": canaryWrong}
	canarySweep(t, "the sealed content", contents, secrets)
	for _, name := range []string{"the path argument", "the query argument", "the header argument", "the body argument", "the answer", "the look-up's answer", "the argument under way"} {
		if !bytes.Contains(contents, []byte(canaryValues[name])) {
			t.Errorf("%s is not kept at all", name)
		}
	}
}

// sweepCommands looks at what the commands for people print without a reason, and that one with a reason prints it.
func (d *daemon) sweepCommands(values map[string]string) {
	d.t.Helper()
	acts := d.actions()
	if len(acts) < 5 {
		d.t.Fatalf("%d actions are on record", len(acts))
	}
	commands := [][]string{{"status"}, {"status", "--json"}, {"actions"}, {"actions", "--json"}, {"review", "list"}, {"review", "list", "--json"}}
	for _, a := range acts {
		id := string(a.ID)
		commands = append(commands, []string{"show", id}, []string{"show", id, "--json"}, []string{"review", "show", id}, []string{"investigate", id}, []string{"investigate", id, "--json"},
			[]string{"show", id, "--protected"})
	}
	for _, args := range commands {
		out, _ := d.deed(args...)
		if out == "" {
			d.t.Errorf("deed %s prints nothing", strings.Join(args, " "))
		}
		canarySweep(d.t, "what `deed "+strings.Join(args, " ")+"` prints", []byte(out), values)
	}
	out, err := d.deed("show", string(acts[0].ID), "--protected", "--why", "to see that there is something to find")
	if err != nil || !strings.Contains(out, canaryBody) {
		d.t.Errorf("with a reason: %v\n%s", err, out)
	}
	// The agents' doors have no way to content.
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, "http://"+d.address+"/v1/actions/"+string(acts[0].ID)+"/content", strings.NewReader(`{"why":"x"}`))
	d.must(err)
	req.Header.Set("Authorization", "Bearer "+d.token)
	answer, err := exchange(req)
	d.must(err)
	canarySweep(d.t, "the agents' door", answer, values)
	if _, err := operator.NewClient(d.operator).Content(d.t.Context(), acts[0].ID, operator.Reading{}); err == nil {
		d.t.Error("content was shown without a reason")
	}
}

// The sweep finds each value in each spelling, so that finding nothing means something.
func TestTheSweepFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for name, value := range canaryValues {
		for _, text := range []string{
			"x" + value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))), url.QueryEscape(value), value[:len(value)/2] + "cut", "cut" + value[len(value)/2:],
			base64.StdEncoding.EncodeToString([]byte(value + "yz")), base64.StdEncoding.EncodeToString([]byte("1" + value)), base64.StdEncoding.EncodeToString([]byte("12" + value)),
		} {
			found := false
			for _, form := range canaryForms(value) {
				found = found || strings.Contains(text, string(form))
			}
			if !found {
				t.Errorf("%s is not found in %q", name, text)
			}
		}
	}
}
