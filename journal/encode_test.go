package journal

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func linked(fields map[string]any) map[string]any {
	body := map[string]any{"prev": Hash{}, "seq": 1, "v": 1}
	for name, value := range fields {
		body[name] = value
	}
	return body
}

func TestEncodeWritesEveryType(t *testing.T) {
	at := time.Date(2026, 10, 5, 12, 9, 57, 123456789, time.FixedZone("", 2*60*60))
	got, err := Encode(linked(map[string]any{
		"a": "x\"\\\n\x00\x1f\x7f/é", "b": true, "c": -1, "d": int64(MaxInteger), "e": uint64(MaxInteger), "f": at, "g": Hash{0xab},
		"h_b64": []byte{0xff, 0}, "i": []string{"y", ""}, "j": []any{1, []any{}, map[string]any{}}, "k": map[string]any{"n": 1, "m": 2},
		"l": []string(nil), "m": map[string]any(nil), "sent_at": at, "time": FormatTime(at),
	}))
	want := `{"a":"x\"\\\n\u0000\u001f` + "\x7f" + `/é","b":true,"c":-1,"d":9007199254740991,"e":9007199254740991,"f":"2026-10-05T10:09:57.123456Z",` +
		`"g":"ab` + strings.Repeat("0", 62) + `","h_b64":"/wA=","i":["y",""],"j":[1,[],{}],"k":{"m":2,"n":1},"l":[],"m":{},` +
		`"prev":"` + strings.Repeat("0", 64) + `","sent_at":"2026-10-05T10:09:57.123456Z","seq":1,"time":"2026-10-05T10:09:57.123456Z","v":1}`
	if err != nil || string(got) != want {
		t.Fatalf("got  %s, %v\nwant %s", got, err, want)
	}
	if err := CheckProfile(got); err != nil {
		t.Errorf("check profile: %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	deep := any(1)
	for range MaxDepth {
		deep = []any{deep}
	}
	loop := map[string]any{}
	loop["again"] = loop
	for _, test := range []struct {
		name   string
		body   map[string]any
		rule   Rule
		member string
	}{
		{"null", linked(map[string]any{"a": nil}), RuleNull, "a"},
		{"null in a list", linked(map[string]any{"a": map[string]any{"b": []any{1, nil}}}), RuleNull, "a.b.1"},
		{"float", linked(map[string]any{"a": 1.0}), RuleNumber, "a"},
		{"large int64", linked(map[string]any{"a": int64(MaxInteger + 1)}), RuleNumber, "a"},
		{"small int64", linked(map[string]any{"a": int64(-MaxInteger - 1)}), RuleNumber, "a"},
		{"large uint64", linked(map[string]any{"a": uint64(math.MaxUint64)}), RuleNumber, "a"},
		{"invalid UTF-8", linked(map[string]any{"a": []string{"\xff"}}), RuleEncoding, "a.0"},
		{"upper case name", linked(map[string]any{"A": 1}), RuleName, "A"},
		{"empty name", linked(map[string]any{"": 1}), RuleName, ""},
		{"name in depth", linked(map[string]any{"a": map[string]any{"b-c": 1}}), RuleName, "a.b-c"},
		{"nested prev", linked(map[string]any{"a": map[string]any{"prev": "x"}}), RuleReserved, "a.prev"},
		{"no links", map[string]any{"a": 1}, RuleLink, "prev"},
		{"prev that is no hash", linked(map[string]any{"prev": "00"}), RuleLink, "prev"},
		{"prev that is no text", linked(map[string]any{"prev": 1}), RuleLink, "prev"},
		{"seq below zero", linked(map[string]any{"seq": -1}), RuleLink, "seq"},
		{"seq beyond 2^53", linked(map[string]any{"seq": uint64(MaxInteger + 1)}), RuleLink, "seq"},
		{"version 2", linked(map[string]any{"v": 2}), RuleLink, "v"},
		{"time in another form", linked(map[string]any{"time": "2026-10-05T10:09:57Z"}), RuleTime, "time"},
		{"time as a number", linked(map[string]any{"a": map[string]any{"sent_at": 5}}), RuleTime, "a.sent_at"},
		{"time beyond year 9999", linked(map[string]any{"time": time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}), RuleTime, "time"},
		{"time before year 1", linked(map[string]any{"a": time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)}), RuleTime, "a"},
		{"bytes under another name", linked(map[string]any{"a": []byte{1}}), RuleType, "a"},
		{"other type", linked(map[string]any{"a": struct{}{}}), RuleType, "a"},
		{"too deep", linked(map[string]any{"a": deep}), RuleDepth, "a" + strings.Repeat(".0", MaxDepth-1)},
		{"without end", linked(map[string]any{"a": loop}), RuleDepth, ""},
		{"too large", linked(map[string]any{"a": strings.Repeat("x", MaxBody)}), RuleSize, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Encode(test.body)
			var broken *ProfileError
			if !errors.As(err, &broken) || broken.Rule != test.rule {
				t.Fatalf("got %s, %v, want rule %q broken", got, err, test.rule)
			}
			if test.member != "" && broken.Member != test.member {
				t.Errorf("got member %q, want %q", broken.Member, test.member)
			}
		})
	}
}

func TestSizeLimit(t *testing.T) {
	empty, err := Encode(linked(map[string]any{"a": ""}))
	if err != nil {
		t.Fatal(err)
	}
	largest, err := Encode(linked(map[string]any{"a": strings.Repeat("x", MaxBody-len(empty))}))
	if err != nil || len(largest) != MaxBody {
		t.Fatalf("got %d bytes, %v, want %d", len(largest), err, MaxBody)
	}
	if err := CheckProfile(largest); err != nil {
		t.Errorf("at the limit: got %v, want nil", err)
	}
	larger := strings.Replace(string(largest), "xx", "xxx", 1)
	var broken *ProfileError
	if err := CheckProfile([]byte(larger)); !errors.As(err, &broken) || broken.Rule != RuleSize {
		t.Errorf("above the limit: got %v, want rule size broken", err)
	}
}

// Errors are logged, so they must not repeat what was refused, nor grow with it.
func TestErrorsHoldNoValues(t *testing.T) {
	const secret = "hunter2"
	for _, fields := range []map[string]any{{"a": secret + "\xff"}, {"time": secret}, {"a": []any{secret, nil}}, {"prev": secret}} {
		if _, err := Encode(linked(fields)); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v, want an error without the value", err)
		}
	}
	if err := CheckProfile([]byte(`{"a":"` + secret + `\x"}`)); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v, want an error without the value", err)
	}
	if _, err := Encode(linked(map[string]any{strings.Repeat("É", 10_000): 1})); err == nil || len(err.Error()) > 1000 {
		t.Errorf("got an error of %d bytes, want a short one", len(err.Error()))
	}
}
