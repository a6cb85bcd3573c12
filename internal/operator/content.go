package operator

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// Reading is the body of a request for protected content.
type Reading struct {
	Why string `json:"why"`
}

// Content is the protected content of one action, for people. Bodies that are no JSON are shown as text.
type Content struct {
	ActionID  action.ID       `json:"action_id"`
	ReadAt    string          `json:"read_at"` // when the reading was recorded
	Requested json.RawMessage `json:"requested,omitempty"`
	Resolved  *Resolved       `json:"resolved,omitempty"` // what was sent
	Result    json.RawMessage `json:"result,omitempty"`   // what the target answered
	Headers   json.RawMessage `json:"result_headers,omitempty"`
	Job       json.RawMessage `json:"job,omitempty"`
	Evidence  []Evidence      `json:"evidence,omitempty"`
}

// Resolved is the operation that was sent, without its credential and without the values of its headers.
type Resolved struct {
	Method     string          `json:"method"`
	URL        string          `json:"url"`
	Headers    []string        `json:"header_names,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	Credential string          `json:"credential_ref,omitempty"`
}

// Evidence is a target's answer to a question.
type Evidence struct {
	Observation action.ObservationID `json:"observation_id"`
	Body        json.RawMessage      `json:"body"`
}

// Content gives the protected content of an action, once the reading stands in the journal.
func (d Desk) Content(ctx context.Context, id action.ID, asked Reading) (Content, error) {
	if !action.ValidID(action.Prefix, string(id)) {
		return Content{}, noSuchAction(id)
	}
	c, err := d.o.Gateway.ReadContent(ctx, d.By, action.ReadAsked{Action: id, Why: asked.Why})
	if err != nil {
		return Content{}, err
	}
	return contentOf(id, c), nil
}

func contentOf(id action.ID, c action.Content) Content {
	shown := Content{ActionID: id, ReadAt: c.At.UTC().Format(time.RFC3339Nano), Result: asJSON(c.Answer), Headers: asJSON(c.Headers), Job: asText(c.Job)}
	if c.Arguments != nil {
		shown.Requested, _ = json.Marshal(map[string]json.RawMessage{"arguments": asJSON(c.Arguments)})
	}
	if op := c.Operation; op != nil {
		shown.Resolved = &Resolved{Method: op.Method, URL: op.URL(), Credential: op.Credential, Body: asJSON(op.Body)}
		for _, h := range op.Headers {
			shown.Resolved.Headers = append(shown.Resolved.Headers, h.Name)
		}
	}
	for _, e := range c.Evidence {
		shown.Evidence = append(shown.Evidence, Evidence{e.Observation, asJSON(e.Body)})
	}
	return shown
}

// asJSON is a body as a JSON value: itself, or its text.
func asJSON(body []byte) json.RawMessage {
	if body == nil || json.Valid(body) {
		return body
	}
	return asText(body)
}

func asText(body []byte) json.RawMessage {
	if body == nil {
		return nil
	}
	text, _ := json.Marshal(strings.ToValidUTF8(string(body), "\uFFFD"))
	return text
}

func (s *Server) postContent(w http.ResponseWriter, r *http.Request, d Desk) {
	var asked Reading
	id := action.ID(r.PathValue("id"))
	if err := read(w, r, &asked); err != nil {
		s.answer(w, nil, action.Errorf(action.CodeInvalidArguments, "nothing was shown: the body is no reason: %s", err).About(id))
		return
	}
	c, err := d.Content(r.Context(), id, asked)
	s.answer(w, c, err)
}

// Content asks for the protected content of an action.
func (c *Client) Content(ctx context.Context, id action.ID, asked Reading) (found Content, err error) {
	return found, c.do(ctx, http.MethodPost, "/v1/actions/"+string(id)+"/content", asked, &found)
}

// ContentKey names the key that seals.
type ContentKey struct {
	ID string `json:"key_id"`
}

// RotateContentKey makes a new key, which seals content from now on.
func (d Desk) RotateContentKey(ctx context.Context) (ContentKey, error) {
	id, err := d.o.RotateContentKey(ctx)
	if err != nil {
		return ContentKey{}, action.Errorf(action.CodeInternal, "no new content key was made, and the one that was there goes on; deed's log says why").Because(err)
	}
	d.o.Log.Info("a new content key was made", "key_id", id, "by", d.By.String())
	return ContentKey{id}, nil
}

func (s *Server) postContentKey(w http.ResponseWriter, r *http.Request, d Desk) {
	if s.o.RotateContentKey == nil {
		s.nothingHere(w, r, d)
		return
	}
	made, err := d.RotateContentKey(r.Context())
	s.answer(w, made, err)
}

// RotateContentKey asks for a new content key.
func (c *Client) RotateContentKey(ctx context.Context) (made ContentKey, err error) {
	return made, c.do(ctx, http.MethodPost, "/v1/content-key", nil, &made)
}
