package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"deed.dev/deed/internal/canonical"
)

const evidencePath = "/on_lost_response/evidence"

// probed is what an earlier WithEvidence has put behind a tool's evidence.
var probed = regexp.MustCompile(`; probed \d{4}-\d{2}-\d{2} against \S+: [a-z_]+(, stored errors replayed|, errors not stored)?`)

// WithEvidence is a contract file in which the evidence of one tool ends with "; " and what a probe found, in the place of
// what an earlier probe found. Nothing else of the text changes. An error means that it cannot be done in this text.
func WithEvidence(data []byte, tool, found string) ([]byte, error) {
	suffix := "; " + found
	if probed.FindString(suffix) != suffix {
		return nil, errors.New("the evidence of a probe has another form")
	}
	for _, chunk := range splitDocuments(data) {
		r := &reader{faults: faults{places: places{}}, lines: chunk.line}
		root, _ := r.read(chunk.text)
		c, ok := root.(map[string]any)
		if !ok || c["tool"] != tool {
			continue
		}
		value, ok := evidenceOf(c)
		if !ok {
			return nil, fmt.Errorf("%s has no evidence to add to; write on_lost_response.evidence first", tool)
		}
		start, end, err := scalarSpan(string(data), r.places, value)
		if err != nil {
			return nil, err
		}
		written := addEvidence(string(data[start:end]), r.places[evidencePath].style, suffix)
		out := []byte(string(data[:start]) + written + string(data[end:]))
		return out, onlyEvidenceDiffers(data, out, tool, probed.ReplaceAllString(strings.TrimRight(value, "\n"), "")+suffix)
	}
	return nil, fmt.Errorf("the file has no tool %s", tool)
}

func evidenceOf(contract map[string]any) (string, bool) {
	lost, _ := contract["on_lost_response"].(map[string]any)
	value, ok := lost["evidence"].(string)
	return value, ok
}

// addEvidence puts the suffix at the end of a value as it is written. Text without quotes gets them: it could not hold a
// colon.
func addEvidence(raw string, how style, suffix string) string {
	switch how {
	case quoted:
		return raw[:1] + probed.ReplaceAllString(raw[1:len(raw)-1], "") + suffix + raw[len(raw)-1:]
	case block:
		return probed.ReplaceAllString(raw, "") + suffix
	default:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(raw + suffix) // text can be encoded
		return strings.TrimSuffix(b.String(), "\n")
	}
}

// scalarSpan finds the evidence in the text, from its first byte to the byte behind its last.
func scalarSpan(text string, at places, value string) (start, end int, err error) {
	unknown := errors.New("the place of the evidence in the file was not found; put its text in quotes, on one line")
	p, ok := at[evidencePath]
	if start = offset(text, p); !ok || start < 0 {
		return 0, 0, unknown
	}
	rest := text[start:]
	switch {
	case p.style == quoted:
		end = quotedEnd(rest)
	case p.style == block:
		end = blockEnd(rest, at.key(evidencePath).column)
	case value != "" && strings.HasPrefix(rest, value):
		end = len(value)
	}
	if end <= 0 {
		return 0, 0, unknown
	}
	return start, start + end, nil
}

// offset turns a line and a column, which counts characters, into bytes; -1 where there is no such place.
func offset(text string, p place) int {
	start := 0
	for range p.line - 1 {
		i := strings.IndexByte(text[start:], '\n')
		if i < 0 {
			return -1
		}
		start += i + 1
	}
	column := 1
	for i := range text[start:] {
		if column == p.column {
			return start + i
		}
		column++
	}
	return -1
}

// quotedEnd is the byte behind the closing quote.
func quotedEnd(text string) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return 0
}

// blockEnd is the end of the last line of a block: the lines that are indented deeper than its key.
func blockEnd(text string, keyColumn int) int {
	end, at := 0, 0
	for n, line := range strings.SplitAfter(text, "\n") {
		content := strings.TrimRight(line, " \t\r\n")
		indented := len(content) - len(strings.TrimLeft(content, " "))
		if n > 0 && content != "" {
			if indented < keyColumn {
				break
			}
			end = at + len(content)
		}
		at += len(line)
	}
	return end
}

// onlyEvidenceDiffers reads both texts again and compares them: a mistake in finding the place must not reach the file.
func onlyEvidenceDiffers(before, after []byte, tool, want string) error {
	wrong := errors.New("the evidence cannot be written into this file without changing something else; write it by hand")
	old, faultsBefore := readDocuments("", before)
	now, faultsAfter := readDocuments("", after)
	if len(old) != len(now) || len(faultsBefore)+len(faultsAfter) > 0 {
		return wrong
	}
	for i := range old {
		if c, ok := old[i].root.(map[string]any); ok && c["tool"] == tool {
			text, ok := evidenceOf(now[i].root.(map[string]any))
			if !ok || strings.TrimRight(text, "\n") != want {
				return wrong
			}
			c["on_lost_response"].(map[string]any)["evidence"] = text
		}
		x, err := canonical.Marshal(old[i].root)
		if err != nil {
			return wrong
		}
		y, err := canonical.Marshal(now[i].root)
		if err != nil || !bytes.Equal(x, y) {
			return wrong
		}
	}
	return nil
}
