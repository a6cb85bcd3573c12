package places

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/journal"
)

// Witness is a witness of C2SP tlog-witness. It remembers by itself; this side only has to learn where it stands.
type Witness struct {
	name   string
	url    string
	policy *journal.Policy
	client *http.Client
	size   uint64 // where it stands, as far as is known; a wrong guess costs one more request
}

// NewWitness is the witness at url that signs with key, for the journal with these keys.
func NewWitness(name, url string, key journal.Key, keys []journal.Key) *Witness {
	policy := journal.TrustLogs(keys...)
	policy.Witnesses = []journal.Witness{{Name: name, Key: key, URL: url}}
	return &Witness{
		name: name, url: strings.TrimSuffix(url, "/") + "/add-checkpoint", policy: policy,
		client: &http.Client{
			Timeout: 15 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New("a witness does not redirect")
			},
		},
	}
}

// Name tells it apart from other places.
func (w *Witness) Name() string { return w.name }

// Check asks for a cosignature: that is how a witness is asked what it has seen.
func (w *Witness) Check(ctx context.Context, head anchor.Head) error {
	_, err := w.Keep(ctx, head)
	return err
}

// turns is how often a request is made before it is given up on: to learn where the witness stands, and to go on from there.
const turns = 3

// Keep has the head cosigned.
func (w *Witness) Keep(ctx context.Context, head anchor.Head) (lines []byte, err error) {
	if w.size > head.Size {
		w.size = 0 // an earlier answer is not held against the journal: the witness has to say it now
	}
	for range turns {
		asked := w.size
		a, err := w.ask(ctx, asked, head)
		if err != nil {
			return nil, err
		}
		switch a.status {
		case http.StatusOK:
			if lines, err = w.cosignatures(head, a.body); err == nil {
				w.size = head.Size
			}
			return lines, err
		case http.StatusConflict:
			stands, err := strconv.ParseUint(strings.TrimSuffix(string(a.body), "\n"), 10, 64)
			switch {
			case err != nil:
				return nil, errors.New("the witness stands somewhere else and does not say where")
			case stands > head.Size, stands == asked:
				return nil, &anchor.ConflictError{Place: w.name, Held: stands, Size: head.Size}
			}
			w.size = stands
		case http.StatusUnprocessableEntity:
			return nil, &anchor.ConflictError{Place: w.name, Held: asked, Size: head.Size}
		case http.StatusNotFound, http.StatusForbidden:
			return nil, fmt.Errorf("the witness does not watch this journal, or not under this key (status %d); give it the public key of the journal", a.status)
		default:
			return nil, fmt.Errorf("the witness answers with status %d: %s", a.status, firstLine(a.body))
		}
	}
	return nil, errors.New("the witness says each time that it stands somewhere else; perhaps somebody else submits checkpoints of this journal")
}

type witnessAnswer struct {
	status int
	body   []byte
}

func (w *Witness) ask(ctx context.Context, old uint64, head anchor.Head) (a witnessAnswer, err error) {
	proof, err := head.Proof(ctx, old)
	if err != nil {
		return a, err
	}
	body := fmt.Appendf(nil, "old %d\n", old)
	for _, h := range proof {
		body = fmt.Appendf(body, "%s\n", base64.StdEncoding.EncodeToString(h[:]))
	}
	body = append(append(body, '\n'), head.Signed...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status = resp.StatusCode
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxCheckpoint))
	return a, err
}

// cosignatures returns the lines of the answer that the witness's key has made. Lines of keys that are not known here are
// passed over.
func (w *Witness) cosignatures(head anchor.Head, answer []byte) (lines []byte, err error) {
	for line := range bytes.Lines(answer) {
		opened, err := w.policy.Open(append(bytes.Clone(head.Signed), line...))
		if err != nil {
			return nil, fmt.Errorf("the answer of the witness is no cosignature of this checkpoint: %w", err)
		}
		if len(opened.Cosignatures) > 0 {
			lines = append(lines, line...)
		}
	}
	if len(lines) == 0 {
		return nil, errors.New("the witness has signed nothing under the key that is expected of it")
	}
	return lines, nil
}

// firstLine shows the beginning of what somebody else wrote, quoted.
func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return strconv.Quote(string(line[:min(len(line), 120)]))
}
