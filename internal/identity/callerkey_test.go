package identity

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"deed.dev/deed/internal/action"
)

func TestCallerKey(t *testing.T) {
	for _, c := range []struct {
		name   string
		meta   map[string]any
		want   action.CallerKey
		hinted bool
	}{
		{"nothing", nil, action.CallerKey{}, false},
		{"whole key", map[string]any{RunKey: "r", StepKey: float64(7), ToolCallIDKey: "t"},
			action.CallerKey{Run: "r", Step: 7, ToolCallID: "t", Source: ToolCallIDKey}, true},
		{"run alone", map[string]any{RunKey: "r"}, action.CallerKey{Run: "r"}, true},
		{"step alone", map[string]any{StepKey: json.Number("3")}, action.CallerKey{Step: 3}, false},
		{"Claude Code", map[string]any{"claudecode/toolUseId": "toolu_01"},
			action.CallerKey{ToolCallID: "toolu_01", Source: "claudecode/toolUseId"}, true},
		{"opencode", map[string]any{"ai.opencode/sessionID": "ses_1"}, action.CallerKey{Run: "ses_1"}, true},
		{"Antigravity", map[string]any{"antigravity.google/conversation_id": "c1"}, action.CallerKey{Run: "c1"}, true},
		{"VS Code", map[string]any{"vscode.conversationId": "c2", "vscode.requestId": "q"}, action.CallerKey{Run: "c2"}, true},
		{"deed's own keys come first", map[string]any{ToolCallIDKey: "mine", "claudecode/toolUseId": "theirs", RunKey: "r", "vscode.conversationId": "c"},
			action.CallerKey{Run: "r", ToolCallID: "mine", Source: ToolCallIDKey}, true},
		{"a hint fills the part that is missing", map[string]any{RunKey: "r", "claudecode/toolUseId": "toolu_01"},
			action.CallerKey{Run: "r", ToolCallID: "toolu_01", Source: "claudecode/toolUseId"}, true},
		{"what is new on every attempt is no identity", map[string]any{
			"progressToken": "p", "callId": "c", "sessionId": "s", "Mcp-Session-Id": "s", "vscode.requestId": "q", "traceparent": "x"},
			action.CallerKey{}, false},
		// case 092: unknown keys never fail a call, whatever they hold.
		{"unknown keys", map[string]any{"": 1, "dev.deed/other": []any{}, "DEV.DEED/RUN": 5, "x\x00": nil}, action.CallerKey{}, false},
		{"longest", map[string]any{ToolCallIDKey: strings.Repeat("é", action.MaxKeyPart/2)},
			action.CallerKey{ToolCallID: strings.Repeat("é", action.MaxKeyPart/2), Source: ToolCallIDKey}, true},
		{"inner and outer spaces are kept", map[string]any{ToolCallIDKey: " a b "}, action.CallerKey{ToolCallID: " a b ", Source: ToolCallIDKey}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, hinted, err := CallerKey(c.meta)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want || hinted != c.hinted {
				t.Errorf("CallerKey = %+v, %v, want %+v, %v", got, hinted, c.want, c.hinted)
			}
		})
	}
}

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		step any
		want int64
	}{
		{0, 0}, {int64(math.MaxInt64), math.MaxInt64}, {float64(0), 0}, {float64(1<<53 - 1), 1<<53 - 1}, {math.Copysign(0, -1), 0},
		{json.Number("9223372036854775807"), math.MaxInt64}, {json.Number("1e2"), 100}, {json.Number("5.0"), 5}, {json.Number("-0"), 0},
	} {
		got, _, err := CallerKey(map[string]any{StepKey: c.step})
		if err != nil || got.Step != c.want {
			t.Errorf("step %v (%T) gives %d, error %v, want %d", c.step, c.step, got.Step, err, c.want)
		}
	}
	for _, step := range []any{
		-1, int64(-1), -1.0, 0.5, math.NaN(), math.Inf(1), float64(1 << 53), 1e300, "1", nil, true, []any{1}, uint(1),
		json.Number("9223372036854775808"), json.Number("-1"), json.Number("0.5"), json.Number("1e400"), json.Number("9007199254740993.0"),
		json.Number(""), json.Number("x"), json.Number("NaN"),
	} {
		checkRefused(t, map[string]any{StepKey: step}, StepKey, "")
	}
}

// case 041: a key that is too long, empty or blank is refused with its name and without its value, and is never cut.
func TestUnusableKeysAreRefused(t *testing.T) {
	known := append([]string{RunKey, ToolCallIDKey}, append(runHints, toolCallIDHints...)...)
	long := strings.Repeat("k", 64<<10)
	for _, key := range known {
		for _, value := range []any{
			"", " ", "\t\n", "\u00a0\u3000", "\u200b", long, long[:action.MaxKeyPart] + "1",
			"a\x00b", "a\nb", "a\x7fb", "a\u0085b", "a\u202eb", "a\u200bb", "a\u2028b", "\xff", "a\xc3", "e\u0301", "\ufb1d",
			nil, 1, 1.5, true, []any{"a"}, map[string]any{"a": "b"}, json.Number("1"),
		} {
			secret, _ := value.(string)
			checkRefused(t, map[string]any{key: value}, key, secret)
		}
	}
}

// case 041: two keys that differ only in their last byte stay two, or are both refused.
func TestLongKeysNeverBecomeOne(t *testing.T) {
	for _, length := range []int{300, action.MaxKeyPart, action.MaxKeyPart + 1, 64 << 10} {
		base := strings.Repeat("k", length-1)
		a, _, errA := CallerKey(map[string]any{ToolCallIDKey: base + "a"})
		b, _, errB := CallerKey(map[string]any{ToolCallIDKey: base + "b"})
		if (errA == nil) != (errB == nil) || (errA == nil && a == b) {
			t.Errorf("%d bytes: keys %q and %q, errors %v and %v", length, a.ToolCallID, b.ToolCallID, errA, errB)
		}
	}
}

func checkRefused(t *testing.T, meta map[string]any, name, secret string) {
	t.Helper()
	key, hinted, err := CallerKey(meta)
	var refusal *action.Error
	if !errors.As(err, &refusal) || refusal.Code != action.CodeKeyInvalid {
		t.Errorf("%.40q gives %+v and error %v, want %s", meta, key, err, action.CodeKeyInvalid)
		return
	}
	if key != (action.CallerKey{}) || hinted {
		t.Errorf("%.40q is refused and still gives %+v, %v", meta, key, hinted)
	}
	if !strings.HasPrefix(refusal.Message, name+" in _meta ") || len(refusal.Message) > 120 {
		t.Errorf("%.40q: the message is %q, want it to name %s and to be short", meta, refusal.Message, name)
	}
	if len(strings.TrimSpace(secret)) > 3 && strings.Contains(refusal.Message, secret) {
		t.Errorf("%.40q: the message holds the value", meta)
	}
}

func FuzzCallerKey(f *testing.F) {
	f.Add(`{"dev.deed/run":"r","dev.deed/step":1,"dev.deed/tool_call_id":"t"}`)
	f.Add(`{"claudecode/toolUseId":"\ud800","dev.deed/step":1e999}`)
	f.Fuzz(func(t *testing.T, text string) {
		var meta map[string]any
		if json.Unmarshal([]byte(text), &meta) != nil {
			return
		}
		key, _, err := CallerKey(meta)
		if err == nil && (len(key.Run) > action.MaxKeyPart || len(key.ToolCallID) > action.MaxKeyPart || key.Step < 0) {
			t.Errorf("CallerKey(%q) = %+v", text, key)
		}
	})
}
