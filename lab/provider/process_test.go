package provider_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deed.dev/deed/lab/provider"
)

// TestMain lets this test program be the provider's own process.
func TestMain(m *testing.M) {
	if os.Getenv("BE_THE_PROVIDER") == "yes" {
		os.Exit(provider.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// process is a provider in a process of its own.
type process struct {
	*exec.Cmd
	ready  provider.Ready
	stdout *bufio.Reader
	stderr *bytes.Buffer
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0], args...), stderr: new(bytes.Buffer)}
	// A program built with -race would otherwise take a second to exit.
	p.Env = append(os.Environ(), "BE_THE_PROVIDER=yes", "GORACE=atexit_sleep_ms=10")
	p.Stderr = p.stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		t.Fatalf("no ready line: %v", err)
	}
	if err := json.Unmarshal(line, &p.ready); err != nil {
		t.Fatalf("ready line %q: %v", line, err)
	}
	return p
}

func (p *process) rig(t *testing.T, ledger string) *rig {
	return &rig{T: t, ledger: ledger, url: p.ready.URL, client: &http.Client{
		Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// stop sends the signal and returns the state in which the process ended.
func (p *process) stop(t *testing.T, signal os.Signal) *os.ProcessState {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(p.stdout); len(rest) > 0 {
		t.Errorf("printed %q after the ready line, want nothing", rest)
	}
	_ = p.Wait() // the state tells more than the error
	return p.ProcessState
}

func TestProcessIsReadyAfterOneLineAndStopsOnSIGTERMAndSIGINT(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
		p := start(t, "--ledger", ledger, "--listen", "127.0.0.1:0")
		if p.ready.PID != p.Process.Pid || !strings.HasPrefix(p.ready.URL, "http://127.0.0.1:") || p.ready.CA != "" {
			t.Errorf("ready %+v, want the process id %d and a URL on loopback", p.ready, p.Process.Pid)
		}
		r := p.rig(t, ledger)
		r.expect(r.charge("k1"), http.StatusCreated)
		if state := p.stop(t, signal); state.ExitCode() != 0 || p.stderr.Len() > 0 {
			t.Errorf("%v: ended with %v and %q, want code 0 and no complaint", signal, state, p.stderr)
		}
	}
}

func TestEffectsAndKeysSurviveSIGKILL(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	p := start(t, "--ledger", ledger)
	r := p.rig(t, ledger)
	first := r.expect(r.post("/v1/charges", "k1", `{"amount":1,"currency":"<&>","metadata":{"a" : 1.50}}`), http.StatusCreated)
	if !strings.Contains(first.body, `"currency":"<&>"`) {
		t.Errorf("got %v, want the currency as it was sent", first)
	}
	r.expect(r.send(t.Context(), "PUT", "/_control/switches", "", `{"faults":[{"kind":"commit_then_status","status":500,"times":1}]}`), http.StatusOK)
	stored := r.expect(r.charge("k2"), http.StatusInternalServerError)
	r.expect(r.send(t.Context(), "PUT", "/_control/switches", "", `{"faults":[{"kind":"commit_then_hang"}]}`), http.StatusOK)
	held := r.postLater(t.Context(), "/v1/charges", "k3", goodCharge)
	r.expect(r.get("/_control/ledger?at_least=3"), http.StatusOK)
	if status := p.stop(t, syscall.SIGKILL).Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended by %v, want SIGKILL", status.Signal())
	}
	if got := <-held; got.err == nil {
		t.Fatalf("got %v, want an error", got)
	}

	again := openRig(t, ledger)
	again.expectEffects(3)
	again.expectReplay(again.post("/v1/charges", "k1", `{"amount":1,"currency":"<&>","metadata":{"a" : 1.50}}`), first)
	again.expectReplay(again.charge("k2"), stored)
	if got := again.expect(again.charge("k3"), http.StatusCreated); got.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the effect whose answer was lost is not replayed")
	}
	again.expectCode(again.post("/v1/charges", "k1", goodCharge), http.StatusUnprocessableEntity, "idempotency_key_reused")
	again.expect(again.charge("k4"), http.StatusCreated)
	if rows := again.expectEffects(4); rows[3].Seq != 4 {
		t.Errorf("the next row has number %d, want 4", rows[3].Seq)
	}
}

func TestAnotherProcessSetsSwitchesAndReadsWhatWasSeen(t *testing.T) {
	r := newRig(t)
	const wanted = `{"keys":"ignore_key","key_retention":"2s","lookup":"off","lookup_lag":"1.5s","faults":[` +
		`{"kind":"status","times":2,"path":"/v1/charges","method":"POST","status":503,"retry_after":"7","delay":"1ms"}]}`
	set := r.expect(r.send(t.Context(), "PUT", "/_control/switches", "", wanted), http.StatusOK)
	if got := r.Switches(); got.KeyRetention != 2*time.Second || got.LookupLag != 1500*time.Millisecond || got.Faults[0].Delay != time.Millisecond {
		t.Errorf("switches %+v, want the durations of %s", got, wanted)
	}
	var back provider.Switches
	if err := json.Unmarshal([]byte(set.body), &back); err != nil {
		t.Fatal(err)
	}
	if got := r.expect(r.send(t.Context(), "PUT", "/_control/switches", "", set.body), http.StatusOK); got.body != set.body {
		t.Errorf("got %v for what was read, want %v", got, set)
	}

	got := r.expect(r.charge("k1"), http.StatusServiceUnavailable)
	if got.header.Get("Retry-After") != "7" {
		t.Errorf("header %v, want Retry-After 7", got.header)
	}
	r.expect(r.charge("k1"), http.StatusServiceUnavailable)
	r.expect(r.charge("k1"), http.StatusCreated)
	if left := r.expect(r.get("/_control/switches"), http.StatusOK); !strings.Contains(left.body, `"faults":[]`) {
		t.Errorf("switches are %v, want no faults left", left)
	}

	var rows []provider.Row
	if err := json.Unmarshal([]byte(r.expect(r.get("/_control/ledger"), http.StatusOK).body), &rows); err != nil || len(rows) != 1 || rows[0].Key != "k1" {
		t.Errorf("rows %+v, %v; want the charge", rows, err)
	}
	var requests []provider.Request
	if err := json.Unmarshal([]byte(r.expect(r.get("/_control/requests"), http.StatusOK).body), &requests); err != nil ||
		len(requests) != 3 || requests[0].Fault != provider.AnswerStatus || requests[2].Fault != "" || requests[0].Body != goodCharge {
		t.Errorf("requests %+v, %v; want the three charges, control not among them", requests, err)
	}
	r.set(provider.Switches{})
	if got := r.expect(r.get("/_control/switches"), http.StatusOK).body; strings.TrimSpace(got) !=
		`{"keys":"honour_key","lookup":"on","jobs":"finish","faults":[],"key_retention":"24h0m0s","lookup_lag":"0s","job_time":"0s"}` {
		t.Errorf("the usual switches are %s", got)
	}
}

func TestControlWaitsForWhatIsAskedFor(t *testing.T) {
	r := newRig(t)
	waiting := make(chan reply, 1)
	r.expect(r.charge(""), http.StatusCreated)
	go func() { waiting <- r.get("/_control/ledger?at_least=2") }()
	r.expect(r.charge(""), http.StatusCreated)
	if got := r.expect(<-waiting, http.StatusOK); strings.Count(got.body, `"op":"charge"`) != 2 {
		t.Errorf("got %v, want two rows", got)
	}
	r.expect(r.get("/_control/requests?at_least=two"), http.StatusBadRequest)
}

func TestControlRefusesWhatItDoesNotKnow(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.AnswerStatus, Status: 503})
	for _, body := range []string{
		``, `[]`, `{} {}`, `{"key":"ignore_key"}`, `{"faults":[{"kind":"explode"}]}`,
		`{"faults":[{"kind":"commit_then_drop","time":1}]}`, `{"lookup_lag":2}`, `{"lookup_lag":"2"}`,
	} {
		r.expect(r.send(t.Context(), "PUT", "/_control/switches", "", body), http.StatusBadRequest)
	}
	r.expect(r.get("/_control/secrets"), http.StatusNotFound)
	r.expect(r.charge(""), http.StatusServiceUnavailable) // as before
}

func TestTornLastLineIsSetAside(t *testing.T) {
	r := newRig(t)
	first := r.expect(r.charge("k1"), http.StatusCreated)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(r.ledger)
	if err != nil {
		t.Fatal(err)
	}
	torn := whole[:len(whole)-1] // a whole row but for the end of its line
	if err := os.WriteFile(r.ledger, append(bytes.Clone(whole), torn...), 0o600); err != nil {
		t.Fatal(err)
	}
	if rows, err := provider.ReadLedger(r.ledger); len(rows) != 1 || err != nil {
		t.Errorf("read %d rows, %v; want the one that is whole", len(rows), err)
	}

	p := start(t, "--ledger", r.ledger)
	p.stop(t, syscall.SIGTERM)
	if !strings.Contains(p.stderr.String(), "was torn") {
		t.Errorf("the process says %q, want a word on the torn line", p.stderr)
	}
	if aside, err := os.ReadFile(r.ledger + ".torn"); err != nil || !bytes.Equal(aside, append(torn, '\n')) {
		t.Errorf("set aside %q, %v; want the torn line", aside, err)
	}

	again := openRig(t, r.ledger)
	if len(again.Torn()) > 0 {
		t.Errorf("torn %q at the second opening, want nothing", again.Torn())
	}
	again.expectReplay(again.charge("k1"), first)
	again.expect(again.charge("k2"), http.StatusCreated)
	again.expectEffects(2)
}

func TestDamagedLedgerIsNotOpened(t *testing.T) {
	r := newRig(t)
	r.expect(r.charge(""), http.StatusCreated)
	r.expect(r.charge(""), http.StatusCreated)
	whole, err := os.ReadFile(r.ledger)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for name, damaged := range map[string][]byte{
		"a line that is no JSON": append([]byte("{\n"), lines[1]...),
		"a row that is missing":  lines[1],
		"rows in another order":  append(bytes.Clone(lines[1]), lines[0]...),
	} {
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if server, err := provider.Open(path); err == nil {
			server.Close()
			t.Errorf("%s: opened, want an error", name)
		}
		if rows, err := provider.ReadLedger(path); err == nil {
			t.Errorf("%s: read %d rows, want an error", name, len(rows))
		}
	}
}

func TestTLSSpeaksBothVersionsOfHTTPAndBreaksBoth(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	p := start(t, "--ledger", ledger, "--tls")
	certificate, err := os.ReadFile(p.ready.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		t.Fatalf("%s has no certificate", p.ready.CA)
	}
	for i, c := range []struct {
		proto string
		url   string
		http2 bool
	}{
		{"HTTP/1.1", p.ready.URL, false},
		{"HTTP/2.0", p.ready.URL, true},
		{"HTTP/2.0", strings.Replace(p.ready.URL, "127.0.0.1", "localhost", 1), true},
	} {
		r := p.rig(t, ledger)
		r.url = c.url
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: c.http2}
		defer transport.CloseIdleConnections()
		r.client.Transport = transport
		r.expect(r.charge(""), http.StatusCreated)

		r.expect(r.send(t.Context(), "PUT", "/_control/switches", "", `{"faults":[
			{"kind":"reset_before_read","times":1},
			{"kind":"commit_then_drop","times":1},
			{"kind":"truncate_body","times":1},
			{"kind":"early_413","times":1}]}`), http.StatusOK)
		if got := r.charge(""); got.err == nil {
			t.Errorf("%s: got %v, want a reset", c.proto, got)
		}
		if got := r.charge(""); got.err == nil {
			t.Errorf("%s: got %v, want the end of the connection", c.proto, got)
		}
		// HTTP/2 clients send frames of their own, and the close can then become a reset.
		if got := r.charge(""); got.status != 201 || got.err == nil {
			t.Errorf("%s: got status %d and %v, want 201 and a broken body", c.proto, got.status, got.err)
		}
		if got := r.charge(""); got.err == nil {
			r.expect(got, http.StatusRequestEntityTooLarge)
		} // an error is as good: the answer can be lost with the connection

		var requests []provider.Request
		if err := json.Unmarshal([]byte(r.expect(r.get("/_control/requests"), http.StatusOK).body), &requests); err != nil {
			t.Fatal(err)
		}
		if n := len(requests); n != 5*(i+1) || requests[n-1].Proto != c.proto || requests[n-1].Connection == 0 || len(requests[n-1].Values("host")) != 1 {
			t.Errorf("%d requests, the last %+v; want %d, in %s, with a connection and a host", n, requests[n-1], 5*(i+1), c.proto)
		}
		rows, err := provider.ReadLedger(ledger)
		if err != nil || len(rows) != 3*(i+1) {
			t.Errorf("%s: %d rows, %v; want %d", c.proto, len(rows), err, 3*(i+1))
		}
	}
}

func TestMisuseOfTheCommandIsCodeTwoAndFailureIsCodeOne(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want int
	}{
		{nil, 2},
		{[]string{"--ledger", filepath.Join(dir, "l"), "extra"}, 2},
		{[]string{"--colour"}, 2},
		{[]string{"--ledger", dir}, 1},
		{[]string{"--ledger", filepath.Join(dir, "l"), "--listen", "nowhere:-1"}, 1},
	} {
		var stdout, stderr bytes.Buffer
		if got := provider.Main(c.args, &stdout, &stderr); got != c.want || stdout.Len() > 0 || stderr.Len() == 0 {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want %d and a complaint", c.args, got, &stdout, &stderr, c.want)
		}
	}
}
