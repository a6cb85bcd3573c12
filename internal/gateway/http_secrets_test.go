package gateway_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/lab/chaos"
	"deed.dev/deed/lab/provider"
)

// httpCanary looks different in every form that it could leak in.
const httpCanary = `canary-9f"3/b+c%d&e=f\g<h`

// httpForms are the spellings of a secret that a sweep looks for.
func httpForms(secret string) map[string]string {
	quoted, _ := json.Marshal(secret)
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(secret)
	forms := map[string]string{
		"raw": secret, "query-encoded": url.QueryEscape(secret), "path-encoded": url.PathEscape(secret),
		"hex": hex.EncodeToString([]byte(secret)), "upper hex": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"JSON": strings.Trim(string(quoted), `"`), "JSON without HTML": strings.Trim(strings.TrimSpace(plain.String()), `"`),
	}
	for shift := range 3 { // the secret stands anywhere in what was encoded
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		core := text[4 : len(text)-4]
		forms[fmt.Sprintf("base64 at %d", shift)] = core
		forms[fmt.Sprintf("URL base64 at %d", shift)] = strings.NewReplacer("+", "-", "/", "_").Replace(core)
	}
	return forms
}

// httpSweep looks for every form of a secret in a text.
func httpSweep(t *testing.T, where, text, secret string) {
	t.Helper()
	for name, form := range httpForms(secret) {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s holds the secret (%s): …%q…", where, name, text[max(0, i-40):min(len(text), i+len(form)+20)])
		}
	}
}

// httpLog collects what is logged.
type httpLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *httpLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}
func (l *httpLog) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.text.String() }
func (l *httpLog) handler() slog.Handler {
	return slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})
}

// httpFiles is every byte that the gateway keeps in its data directory, and what is sealed there beside it, opened.
func httpFiles(r *rig.Rig) string {
	r.T.Helper()
	r.Settled()
	var all strings.Builder
	files, err := os.ReadDir(r.Dir)
	if err != nil {
		r.T.Fatal(err)
	}
	for _, f := range files {
		if !f.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.Dir, f.Name()))
		if err != nil {
			r.T.Fatal(err)
		}
		all.Write(data)
	}
	for _, content := range httpContents(r) {
		all.Write(content)
	}
	return all.String()
}

// httpContents opens everything that is sealed.
func httpContents(r *rig.Rig) (all [][]byte) {
	r.T.Helper()
	keys, err := sealed.Read(filepath.Join(r.Dir, sqlite.KeysName))
	if err != nil {
		r.T.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.Dir, "deed.db")+"?mode=ro")
	if err != nil {
		r.T.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`select kind, owner, commitment, lock, sealed from payloads join content_locks using (slot)`)
	if err != nil {
		r.T.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p sealed.Place
		var value []byte
		if err := rows.Scan(&p.Kind, &p.Owner, &p.Commitment, &p.Lock, &value); err != nil {
			r.T.Fatal(err)
		}
		salted, err := keys.Open(p, value)
		if err != nil {
			r.T.Fatal(err)
		}
		all = append(all, salted[16:])
	}
	if err := rows.Err(); err != nil {
		r.T.Fatal(err)
	}
	return all
}

// httpSaid is all that a caller gets.
func httpSaid(a action.Answer, err error) string {
	status, _ := json.Marshal(a.Status())
	said := fmt.Sprintf("%s\n%s\n%s\n%+v\n%v\n", status, a.Sentence(), a.Result, a, err)
	if known, ok := err.(*action.Error); ok {
		refusal, _ := json.Marshal(known.Status())
		said += fmt.Sprintf("%s\n%#v", refusal, known)
	}
	return said
}

// AU-25, VA-01, VA-08, HT-07, HT-21, HT-22, cases 085 and 121: whatever goes wrong, and even when the target gives the
// credential back, no spelling of it is in an answer, an error, the log, the journal or any file; the reference is.
func TestCredentialIsNowhereButAtTheTarget(t *testing.T) {
	t.Parallel()
	echo := provider.Fault{Kind: provider.EchoHeaders}
	for name, as := range map[string]string{
		"bearer": "kind: bearer", "header": "kind: header\nheader: X-Api-Key", "query": "kind: query\nparameter: api_key",
	} {
		for _, c := range []struct {
			name   string
			faults []provider.Fault
			cut    chaos.Plan
		}{
			{"works", nil, chaos.Plan{}},
			{"echo in headers", []provider.Fault{echo}, chaos.Plan{}},
			{"echo in a compressed body", []provider.Fault{{Kind: provider.GzipEcho}}, chaos.Plan{}},
			{"echo in a refusal", []provider.Fault{{Kind: provider.AnswerStatus, Status: 400, Body: `{"error":` + httpQuoted(httpCanary) + `}`}}, chaos.Plan{}},
			{"echo in an error page", []provider.Fault{{Kind: provider.AnswerStatus, Status: 500, Body: "bad key " + httpCanary + " or " + url.QueryEscape(httpCanary)}}, chaos.Plan{}},
			{"echo in base64 and hex", []provider.Fault{{Kind: provider.AnswerStatus, Status: 201, Body: base64.StdEncoding.EncodeToString([]byte("Bearer "+httpCanary)) + " " + hex.EncodeToString([]byte(httpCanary))}}, chaos.Plan{}},
			{"echo in a place", []provider.Fault{{Kind: provider.Redirect, Status: 302, Location: "https://elsewhere.example/?k=" + url.QueryEscape(httpCanary)}}, chaos.Plan{}},
			{"reset", []provider.Fault{{Kind: provider.ResetBeforeRead}}, chaos.Plan{}},
			{"dropped", []provider.Fault{{Kind: provider.DropAfterRead}}, chaos.Plan{}},
			{"refused", nil, chaos.Plan{Mode: chaos.Refuse}},
			{"hangs", []provider.Fault{{Kind: provider.HangAfterRead}}, chaos.Plan{}},
			{"401", []provider.Fault{{Kind: provider.AnswerStatus, Status: 401, Body: httpCanary}}, chaos.Plan{}},
			{"echo cut short", []provider.Fault{{Kind: provider.AnswerStatus, Status: 201, Body: httpCanary + strings.Repeat("x", 4000)}}, chaos.Plan{Mode: chaos.CutResponse, Bytes: 2000}},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				var log httpLog
				r := rig.New(t, rig.Options{Secret: httpCanary, SecretAs: as, Timeout: "500ms", Log: log.handler()})
				r.Break(c.faults...)
				r.Cut(c.cut)
				for _, call := range []*rig.Call{
					r.Call("send_email", unknownMail).Key("run", 1, "a"),
					r.Call("send_email", unknownMail).Key("run", 1, "a"),
					r.Call("send_email", unknownMail).Key("run2", 1, "b"),
					r.Call("send_email", `{"to":1}`),
					r.Call("get_echo", `{}`),
				} {
					httpSweep(t, "the answer", httpSaid(call.Try()), httpCanary)
				}
				r.Idle()
				httpSweep(t, "the journal", r.Export(), httpCanary)
				httpSweep(t, "the data directory", httpFiles(r), httpCanary)
				httpSweep(t, "the log", log.String(), httpCanary)
				for _, a := range r.Actions() {
					httpSweep(t, "the row", fmt.Sprintf("%+v", a), httpCanary)
				}
				if !strings.Contains(r.Export(), `"credential_ref":"provider"`) {
					t.Error("the journal names no credential")
				}
				if c.cut.Mode != chaos.Refuse && !httpReached(r, httpCanary) {
					t.Error("the credential did not even reach the target, so the sweep shows nothing")
				}
			})
		}
	}
}

func httpQuoted(s string) string { b, _ := json.Marshal(s); return string(b) }

// httpReached reports whether the provider was given the secret.
func httpReached(r *rig.Rig, secret string) bool {
	for _, q := range r.Provider.Requests() {
		if strings.Contains(q.URI, url.QueryEscape(secret)) {
			return true
		}
		for _, h := range q.Headers {
			if strings.Contains(h.Value, secret) {
				return true
			}
		}
	}
	return false
}

// HT-22, case 121: an answer that cannot be searched is withheld, cookies and challenges are not passed on, and the effect
// stays proved.
func TestAnswerThatCannotBeSearchedIsWithheld(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Secret: httpCanary})
	r.Break(provider.Fault{Kind: provider.GzipEcho})
	a := r.Call("send_email", unknownMail).Do()
	if a.Action.State != action.Completed || !a.Withheld || len(a.Result) != 0 || a.Complete || r.Effects() != 1 {
		t.Errorf("state %s, withheld %v, %d bytes, complete %v, effects %d", a.Action.State, a.Withheld, len(a.Result), a.Complete, r.Effects())
	}
	if !strings.Contains(a.Sentence(), "withheld") {
		t.Errorf("the caller is not told: %s", a.Sentence())
	}
	r.Break(provider.Fault{Kind: provider.EchoHeaders})
	b := r.Call("send_email", `{"to":"bob"}`).Do()
	if said := strings.ToLower(httpSaid(b, nil)); strings.Contains(said, "set-cookie") || b.Action.State != action.Completed {
		t.Errorf("state %s, said %s", b.Action.State, said)
	}
}

// HT-22, case 121: when the answer breaks off within the echoed credential, not even the part that came is kept.
func TestSecretThatIsCutInTheMiddleIsNotKept(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.Options{Secret: httpCanary})
	body := strings.Repeat("x", 500) + httpCanary + strings.Repeat("y", 500)
	r.Break(provider.Fault{Kind: provider.AnswerStatus, Status: 201, Body: body})
	r.Call("send_email", unknownMail).Do()
	head := r.Proxy.Connections()[0].Received - int64(len(body))
	r.Cut(chaos.Plan{Mode: chaos.CutResponse, Bytes: head + 500 + 16})
	a := r.Call("send_email", `{"to":"bob"}`).Do()
	if a.Action.State != action.Completed || a.Complete || !strings.Contains(string(a.Result), "xxxx") {
		t.Fatalf("state %s, complete %v, result %q: the answer was not cut where it should be", a.Action.State, a.Complete, a.Result)
	}
	if kept := httpFiles(r) + httpSaid(a, nil); strings.Contains(kept, httpCanary[:12]) {
		t.Error("the beginning of the credential was kept")
	}
}

// HT-07, FP-12, HT-09: request bodies and arguments are not in the journal or the log, and no digest on record can be
// undone by trying all values of a short one.
func TestShortValuesCannotBeGuessedFromDigests(t *testing.T) {
	t.Parallel()
	const pin = "4831"
	var log httpLog
	text := strings.NewReplacer("name: {type: string}", "name: {type: string}\n    pin: {type: string}",
		`{name: "${args.name}"}`, `{pin: "${args.pin}"}`, "required: [name]", "required: [name, pin]").Replace(unknownByBody)
	r := rig.New(t, rig.Options{Contracts: text, Log: log.handler()})
	args := `{"name":"ann","pin":"` + pin + `"}`
	a := r.Call("file_report", args).Key("run", 1, "a").Do()
	if _, err := r.Call("file_report", `{"name":"ann","pin":"0000"}`).Key("run", 1, "a").Try(); err == nil {
		t.Error("other arguments under the same key were taken")
	}
	if a.Action.State != action.Completed || !strings.Contains(r.Provider.Requests()[0].Body, pin) {
		t.Fatalf("state %s, sent %s", a.Action.State, r.Provider.Requests()[0].Body)
	}
	export := r.Export()
	for where, text := range map[string]string{"journal": export, "log": log.String()} {
		if strings.Contains(text, `"`+pin+`"`) || strings.Contains(text, `"ann"`) {
			t.Errorf("the %s holds an argument", where)
		}
	}
	stored, err := json.Marshal(r.Stored(a.Action.ID))
	if err != nil {
		t.Fatal(err)
	}
	httpGuess(t, export+string(stored), r.Provider.Requests()[0].URI)
}
