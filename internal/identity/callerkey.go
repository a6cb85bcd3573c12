package identity

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"deed.dev/deed/internal/action"
	"golang.org/x/text/unicode/norm"
)

// The keys of _meta in which a caller gives its durable identity.
const (
	RunKey        = "dev.deed/run"
	StepKey       = "dev.deed/step"
	ToolCallIDKey = "dev.deed/tool_call_id"
)

// Keys that known clients send by themselves, used where the keys above are absent. Each names one thing for as long as
// the client lives. What is new on every attempt (progressToken, a session) or means different things in different
// versions (callId) is not here and is never looked at.
var (
	runHints        = []string{"ai.opencode/sessionID", "antigravity.google/conversation_id", "vscode.conversationId"}
	toolCallIDHints = []string{"claudecode/toolUseId"}
)

// CallerKey reads the caller's durable identity from the _meta of a request. hinted reports whether the caller gave a run
// or a tool-call id at all, so that it is no stranger among those who hold the same token. A known key with a value that
// is no identity is refused with CodeKeyInvalid, and never mended: two keys that are cut to one would be one. Keys that
// are not known are ignored.
func CallerKey(meta map[string]any) (key action.CallerKey, hinted bool, err error) {
	if key.Run, _, err = firstOf(meta, RunKey, runHints); err != nil {
		return action.CallerKey{}, false, err
	}
	if key.ToolCallID, key.Source, err = firstOf(meta, ToolCallIDKey, toolCallIDHints); err != nil {
		return action.CallerKey{}, false, err
	}
	if v, given := meta[StepKey]; given {
		step, ok := integer(v)
		if !ok {
			return action.CallerKey{}, false, invalidKey(StepKey, "is not an integer from 0 to 2^63-1")
		}
		key.Step = step
	}
	return key, key.Run != "" || key.ToolCallID != "", nil
}

// firstOf gives the value of the first key that is there, and that key.
func firstOf(meta map[string]any, name string, hints []string) (value, source string, err error) {
	for _, name := range append([]string{name}, hints...) {
		v, given := meta[name]
		if !given {
			continue
		}
		s, ok := v.(string)
		if !ok {
			return "", "", invalidKey(name, "is not a string")
		}
		if flaw := flawOf(s); flaw != "" {
			return "", "", invalidKey(name, flaw)
		}
		return s, name, nil
	}
	return "", "", nil
}

// flawOf says what keeps a text from being an identity, "" when nothing does.
func flawOf(s string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > action.MaxKeyPart:
		return "is longer than " + strconv.Itoa(action.MaxKeyPart) + " bytes"
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, invisible):
		return "has a control character or one that cannot be seen"
	case strings.TrimSpace(s) == "":
		return "is blank"
	case !norm.NFC.IsNormalString(s):
		return "is not in Unicode normal form C"
	default:
		return ""
	}
}

// invisible characters would let two keys look like one in every record.
func invisible(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// integer reads a JSON number that is an exact integer of 0 or more. Beyond 2^53 only a number that was kept as text is
// exact.
func integer(v any) (int64, bool) {
	const exact = 1<<53 - 1
	var f float64
	switch n := v.(type) {
	case int:
		return int64(n), n >= 0
	case int64:
		return n, n >= 0
	case float64:
		f = n
	case json.Number:
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			return i, i >= 0
		}
		parsed, err := strconv.ParseFloat(string(n), 64)
		if err != nil {
			return 0, false
		}
		f = parsed
	default:
		return 0, false
	}
	if f != math.Trunc(f) || f < 0 || f > exact {
		return 0, false
	}
	return int64(f), true
}

// invalidKey names the key and never its value.
func invalidKey(name, flaw string) *action.Error {
	return action.Errorf(action.CodeKeyInvalid, "%s in _meta %s", name, flaw)
}
