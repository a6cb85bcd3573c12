package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
)

// maxText bounds the part of a target's answer that a model is shown as text. The rest is named, counted and kept.
const maxText = 256 << 10

// encode makes a tool result: one sentence for the model, the target's answer, and the facts for machines. An outcome that
// is not a proved effect is marked as an error, so that no model takes it for success; its facts say what it is.
func encode(a action.Answer) *mcp.CallToolResult {
	status := a.Status()
	r := &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: status.Message}},
		IsError: a.Code != "",
	}
	structured := map[string]any{"deed": status}
	if body := a.ResultJSON(); body != nil && !a.Withheld {
		if len(a.Result) <= maxText {
			structured["result"] = body
		}
		r.Content = append(r.Content, &mcp.TextContent{Text: text(a.Result, status.Result)})
	}
	r.StructuredContent = structured
	return r
}

// text is the answer as a model reads it: valid UTF-8, bounded, and honest about what was left out.
func text(body []byte, ref action.ResultID) string {
	cut := body
	if len(cut) > maxText {
		cut = cut[:maxText]
		for len(cut) > 0 && !utf8.RuneStart(body[len(cut)]) {
			cut = cut[:len(cut)-1]
		}
	}
	s := strings.ToValidUTF8(string(cut), "\uFFFD")
	if left := len(body) - len(cut); left > 0 {
		s += fmt.Sprintf("\n[%d more bytes are kept as %s]", left, ref)
	}
	return s
}

// refusal answers a call that made no action.
func refusal(err error) *mcp.CallToolResult {
	var known *action.Error
	if !errors.As(err, &known) {
		known = action.Errorf(action.CodeInternal, "deed met a fault of its own; nothing was sent")
	}
	status := known.Status()
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: string(known.Code) + ": " + status.Message}},
		IsError:           true,
		StructuredContent: map[string]any{"deed": status},
	}
}

func rawSchema(schema []byte) json.RawMessage { return json.RawMessage(schema) }
