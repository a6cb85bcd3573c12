package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/audit"
)

// ErrLost means that the answer to a decision was lost: it may have been recorded and done.
var ErrLost = errors.New("the answer was lost, and what was decided may be on record: look with `deed review show` before you decide again")

// Client uses the door of a gateway that runs.
type Client struct{ http *http.Client }

// maxAnswer bounds what is read of one answer: the content of an action at its largest, spelled as JSON.
const maxAnswer = 512 << 20

// NewClient makes a client of the door behind a socket. It opens nothing.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status gives the state of the whole.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.do(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Show gives what is on record about an action.
func (c *Client) Show(ctx context.Context, id action.ID) (found Case, err error) {
	return found, c.do(ctx, http.MethodGet, "/v1/actions/"+string(id), nil, &found)
}

// Decide records a decision about an unknown action.
func (c *Client) Decide(ctx context.Context, id action.ID, asked Decision) (s action.Status, err error) {
	return s, c.do(ctx, http.MethodPost, "/v1/actions/"+string(id)+"/review", asked, &s)
}

// Undo compensates a completed action.
func (c *Client) Undo(ctx context.Context, id action.ID) (s action.Status, err error) {
	return s, c.do(ctx, http.MethodPost, "/v1/actions/"+string(id)+"/undo", nil, &s)
}

// Checkpoint gives the signed checkpoint of the records before size, 0 for all.
func (c *Client) Checkpoint(ctx context.Context, size uint64) ([]byte, error) {
	return c.text(ctx, fmt.Sprintf("/v1/journal/checkpoint?size=%d", size))
}

// Receipt gives the receipt of an action.
func (c *Client) Receipt(ctx context.Context, id action.ID) ([]byte, error) {
	return c.text(ctx, "/v1/actions/"+string(id)+"/receipt")
}

// Keys lists the public keys of the log, the one in use first.
func (c *Client) Keys(ctx context.Context) (keys []audit.KeyInUse, err error) {
	return keys, c.do(ctx, http.MethodGet, "/v1/journal/keys", nil, &keys)
}

// Rotate lets a new key sign from now on.
func (c *Client) Rotate(ctx context.Context) (r audit.Rotated, err error) {
	return r, c.do(ctx, http.MethodPost, "/v1/journal/keys/rotate", nil, &r)
}

// text gets something that is no JSON.
func (c *Client) text(ctx context.Context, path string) (text []byte, err error) {
	return text, c.do(ctx, http.MethodGet, path, nil, &text)
}

// Request gives one request to a person with the whole operation that is asked about.
func (c *Client) Request(ctx context.Context, id string) (r Request, err error) {
	return r, c.do(ctx, http.MethodGet, "/v1/approvals/"+url.PathEscape(id), nil, &r)
}

// Approve brings what an approver has signed.
func (c *Client) Approve(ctx context.Context, id action.DecisionID, said ApprovalDecision) (s action.Status, err error) {
	return s, c.do(ctx, http.MethodPost, "/v1/approvals/"+url.PathEscape(string(id)), said, &s)
}

// Revoke takes back what was allowed or asked and not sent yet.
func (c *Client) Revoke(ctx context.Context, asked Revoke) (done Revoked, err error) {
	return done, c.do(ctx, http.MethodPost, "/v1/revoke", asked, &done)
}

// do makes one request. A refusal comes back as the *action.Error that the gateway made.
func (c *Client) do(ctx context.Context, method, path string, asked, into any) error {
	var body io.Reader
	if raw, ok := asked.([]byte); ok {
		body = bytes.NewReader(raw)
	} else if asked != nil {
		text, err := json.Marshal(asked)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://deed"+path, body)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return lost(method, fmt.Errorf("reach the operator's door: %w", err))
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return lost(method, fmt.Errorf("read the answer of the operator's door: %w", err))
	}
	if res.StatusCode == http.StatusOK && into == nil {
		return nil
	}
	if res.StatusCode == http.StatusOK {
		if raw, ok := into.(*[]byte); ok {
			*raw = text
			return nil
		}
		return json.Unmarshal(text, into)
	}
	var p Problem
	if err := json.Unmarshal(text, &p); err != nil || p.Code == "" {
		return fmt.Errorf("the operator's door answered %s", res.Status)
	}
	return action.Errorf(p.Code, "%s", p.Message).About(p.Action)
}

// lost tells a request that may have done something from one that did not.
func lost(method string, err error) error {
	var dial *net.OpError
	if method == http.MethodGet || errors.As(err, &dial) && dial.Op == "dial" {
		return err
	}
	return errors.Join(ErrLost, err)
}
