package contract_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

func FuzzParse(f *testing.F) {
	f.Add(pay)
	files, _ := filepath.Glob("testdata/broken/*.txt")
	ready, _ := filepath.Glob("../../contracts/*.yaml")
	for _, file := range append(files, ready...) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		text, _, _ := strings.Cut(string(data), wantMark)
		for doc := range strings.SplitSeq(text, "---\n") {
			f.Add(doc)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := contract.Parse("fuzz.yaml", []byte(text))
		var faults contract.LoadErrors
		if err != nil && (!errors.As(err, &faults) || len(faults) == 0) {
			t.Fatalf("got error %T", err)
		}
		for _, c := range list {
			again, err := contract.Parse("again.json", c.Source)
			if err != nil || len(again) != 1 || again[0].Digest != c.Digest {
				t.Fatalf("the recorded contract does not load: %v", err)
			}
			_, _ = c.Resolve([]byte(`{"invoice":"i","amount":1}`))
			c.Judge(action.Response{Status: 200, Body: []byte(`{}`)})
			_ = contract.Describe(c).String()
			if c.Lookup != nil {
				_, _ = c.LookupOperation([]byte(`{"invoice":"i","amount":1}`), who)
				c.Lookup.Find(action.Response{Status: 200, Body: []byte(`{"data":[1],"items":[]}`)}, who)
			}
			if c.Poll != nil {
				_, _ = c.PollOperation([]byte(`{"invoice":"i","amount":1}`), who)
				c.Poll.Find(action.Response{Status: 200, Body: []byte(`{"state":"done"}`)}, who)
			}
			if c.Undo != nil {
				_, _ = c.UndoArguments([]byte(`{"invoice":"i","amount":1}`), []byte(`{"id":1}`))
			}
		}
	})
}

func FuzzResolve(f *testing.F) {
	for _, args := range []string{`{}`, ``, `{"invoice":"i","amount":1}`, `{"invoice":"..","amount":1,"note":"a\r\nb"}`,
		`{"invoice":"⸮","amount":18446744073709551615,"repeat_of":"rep_1"}`, `{"invoice":"%2e%2e","amount":-0,"tags":["x",1]}`} {
		f.Add([]byte(args))
	}
	c := load(f, with(f, pay, "note: {type: string}", "note: {type: string}\n    tags: {type: array, items: {type: [string, integer]}}\n"+
		"    unit: {type: string, default: cents}", "payments", "x{invoice}y/{unit}{?note,tags*}", "  json:",
		"  headers: {X-Note: \"${args.?note}\"}\n  json:")+
		"impact: Pays ${args.invoice}.\nnormalize: {unit: \"${args.unit.lowerAscii()}\"}\n")
	f.Fuzz(func(t *testing.T, args []byte) {
		r, err := c.Resolve(args)
		if err != nil {
			var known *action.Error
			if !errors.As(err, &known) || known.Code != action.CodeInvalidArguments {
				t.Fatalf("got error %v", err)
			}
			return
		}
		op, err := r.Operation("act_1", "k")
		if err != nil {
			t.Fatalf("the call resolved and gives no operation: %v", err)
		}
		req, err := http.NewRequest(op.Method, op.URL(), nil)
		if err != nil {
			t.Fatalf("%s: %v", op.URL(), err)
		}
		if req.URL.Host != "pay.example:443" || strings.Count(op.Path, "/") != 5 || req.URL.EscapedPath() != op.Path {
			t.Fatalf("the request goes to %s", req.URL)
		}
		if clean := req.URL.JoinPath(); clean.EscapedPath() != op.Path {
			t.Fatalf("%s cleans to %s", op.Path, clean.EscapedPath())
		}
		for _, h := range op.Headers {
			if strings.ContainsAny(h.Value, "\r\n\x00") {
				t.Fatalf("header %s can be split", h.Name)
			}
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	c := load(b, pay)
	args := []byte(`{"invoice":"in_0123456789","amount":25000,"note":"for services rendered"}`)
	b.ReportAllocs()
	for b.Loop() {
		r, err := c.Resolve(args)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Operation("act_1", "k"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	c := judging(b, "status in [200, 201]", "status in [400, 403]", "status in [429, 503]")
	b.ReportAllocs()
	for b.Loop() {
		c.Judge(action.Response{Status: 201, Body: []byte(`{}`)})
	}
}
