package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
)

// The tools of the model: one of each class, and one whose target's "absent" is nobody's proof. The margin of the one with a
// key is more than modelSkew and its time-out: that is what a contract has to allow for.
const (
	modelSettle = 30 * time.Second // of the target that can be asked
	modelLate   = 5 * time.Second  // after which what is still on its way has arrived
	modelKept   = 24 * time.Hour   // how long the target keeps a key
	modelWindow = 15 * time.Minute // in which an equal call attaches to what is over
	modelSends  = 3                // that a contract allows
	modelLease  = time.Hour
	modelSkew   = 2 * time.Hour // the most by which the clock is ever set back
)

func modelContracts() string {
	const head = `
tool: TOOL
description: A tool of the model.
input: {type: object, required: [customer], properties: {customer: {type: string}}}
http: {method: METHOD, url: "https://target.example/TOOL", credential: target BODY}
attempts: 3
timeout: 5s
done_when: ${status in [200, 201]}
no_effect_when: ${status == 422}
retry_when: ${status == 429}
`
	const effects = `
metadata: {json: /metadata/idem_key}
resource: customer/${args.customer}
keep_result: 30d
`
	const lookup = `
lookup:
  request: {method: GET, url: "https://target.example/find{?idem}", credential: target}
  found: ${size(body.data) > 0}
`
	question := strings.Replace(lookup, "{?idem}", "?idem={deed.idem_key}", 1)
	tool := func(name, method, more string) string {
		body := `, json: {customer: "${args.customer}", metadata: {}}`
		if method == "GET" {
			body = ""
		}
		return strings.NewReplacer("TOOL", name, "METHOD", method, " BODY", body).Replace(head) + more
	}
	return strings.Join([]string{
		tool("read", "GET", "on_lost_response: {class: read_only, evidence: the model}\n"),
		tool("mail", "POST", effects+"on_lost_response: {class: blocked_after_unknown, attach_for: 15m}\n"),
		tool("keyed", "POST", effects+`on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}
  attach_for: 15m
  margin: 3h
  evidence: the model
`),
		tool("asked", "POST", effects+question+"  authoritative: true\n  settle: 30s\n"+
			"on_lost_response: {class: status_queryable, attach_for: 15m, review_after: 1h, evidence: the model}\n"),
		tool("guessed", "POST", effects+question+"  authoritative: false\n"+
			"on_lost_response: {class: status_queryable, attach_for: 15m, review_after: 1h, evidence: the model}\n"),
	}, "---\n")
}

// What becomes of one send.
const (
	sendOK        = "ok"
	sendNothing   = "lost before the effect"
	sendLost      = "lost after the effect"
	sendSlow      = "given up on before the effect"
	sendLater     = "lost, and answered late"
	sendRefusal   = "lost, and refused late"
	sendRefused   = "refused"
	sendBusy      = "asked to come later"
	sendNotSent   = "not sent"
	sendBroken    = "broken without effect"
	sendBrokenHad = "broken with effect"
	sendDies      = "the gateway dies before the effect"
	sendDiesAfter = "the gateway dies after the effect"
)

var modelFates = []string{
	sendOK, sendNothing, sendLost, sendSlow, sendLater, sendRefusal, sendRefused, sendBusy, sendNotSent, sendBroken,
	sendBrokenHad, sendDies, sendDiesAfter,
}

// What a target answers to questions.
const (
	lookOn    = "on"
	lookOff   = "off"
	lookLags  = "lagging" // it knows of nothing that is younger than modelLate
	lookAlike = "look-alike"
)

// A world is the target with its own ledger, and the clocks. Nothing in it reads what deed has on record.
type world struct {
	mu     sync.Mutex
	epoch  time.Time
	gone   time.Duration // how much time has truly passed
	skew   time.Duration // how wrong the gateway's clock is
	fates  []string      // of the sends to come; what comes after them is ok
	look   string
	rows   map[string][]row // by token
	coming map[string]row   // effects that have not arrived yet
	idem   map[string]string
	late   []func()
	locked bool
	log    []string
}

type row struct {
	at   time.Duration
	send int // which attempt had it
	body string
}

func newWorld() *world {
	return &world{
		// A thousand days ahead of the machine's clock: no wait ends by itself, and the test alone lets time pass.
		epoch: time.Now().Truncate(time.Second).Add(1000 * 24 * time.Hour), look: lookOn,
		rows: map[string][]row{}, coming: map[string]row{}, idem: map[string]string{},
	}
}

func (w *world) Locked() bool         { return w.locked }
func (w *world) Refresh(string) error { return errors.New("nothing newer") }

// wall is the gateway's clock.
func (w *world) wall() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epoch.Add(w.gone + w.skew)
}

// pass lets time pass, and what is on its way arrive.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone += d
	for token, r := range w.coming {
		if w.gone >= r.at {
			w.rows[token] = append(w.rows[token], r)
			delete(w.coming, token)
		}
	}
}

// effects counts what the first sends of an action have done and will have done.
func (w *world) effects(token action.ID, sends int) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.rows[string(token)] {
		if r.send <= sends {
			n++
		}
	}
	if r, coming := w.coming[string(token)]; coming && r.send <= sends {
		n++
	}
	return n
}

// first is the result of an action's first effect.
func (w *world) first(token action.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := w.rows[string(token)]; len(all) > 0 {
		return all[0].body
	}
	return ""
}

// happen gives the effect of a send at once. A target that keeps keys gives the first one again.
func (w *world) happen(d action.Dispatch, keeps bool) string {
	token := d.Token
	if keeps {
		if r, ok := w.coming[token]; ok {
			w.rows[token] = append(w.rows[token], r)
			delete(w.coming, token)
		}
		if all := w.rows[token]; len(all) > 0 && w.gone-all[0].at < modelKept {
			return all[0].body
		}
	}
	r := row{w.gone, d.Number, fmt.Sprintf(`{"id":"%s/%d","ref":"%s"}`, token, len(w.rows[token])+1, w.idem[token])}
	w.rows[token] = append(w.rows[token], r)
	return r.body
}

// Perform is the executor: one send or one question.
func (n *node) Perform(_ context.Context, d action.Dispatch) action.Outcome {
	w := n.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Token == "" {
		o := w.answer(d)
		w.log = append(w.log, fmt.Sprintf("asked about %s: %s", d.Action, o.Result.Body))
		return o
	}
	keeps := d.Operation.Key.Header != ""
	var sent struct {
		Metadata struct {
			IdemKey string `json:"idem_key"`
		}
	}
	if err := json.Unmarshal(d.Operation.Body, &sent); err == nil {
		w.idem[d.Token] = sent.Metadata.IdemKey
	}
	fate := sendOK
	if len(w.fates) > 0 {
		fate, w.fates = w.fates[0], w.fates[1:]
	}
	w.log = append(w.log, fmt.Sprintf("send %d of %s: %s", d.Number, d.Action, fate))
	lost := action.Outcome{State: action.AttemptTransportError, BytesSent: 100, Reason: "response_lost"}
	switch fate {
	case sendOK:
		return modelAnswer(d, 201, w.happen(d, keeps))
	case sendLost:
		w.happen(d, keeps)
	case sendSlow, sendLater:
		_, there := w.coming[d.Token]
		if keeps && (there || len(w.rows[d.Token]) > 0) {
			w.happen(d, keeps)
			break
		}
		if fate == sendSlow && !there {
			w.coming[d.Token] = row{w.gone + modelLate, d.Number, fmt.Sprintf(`{"id":"%s/late","ref":"%s"}`, d.Token, w.idem[d.Token])}
		} else {
			o := modelAnswer(d, 201, w.happen(d, keeps))
			w.late = append(w.late, func() { d.Late(o) })
		}
		lost = action.Outcome{State: action.AttemptTimeout, BytesSent: 100, Reason: "timeout"}
	case sendRefusal:
		o := modelAnswer(d, 422, `{"error":"no"}`)
		w.late = append(w.late, func() { d.Late(o) })
	case sendRefused:
		return modelAnswer(d, 422, `{"error":"no"}`)
	case sendBusy:
		o := modelAnswer(d, 429, `{}`)
		o.RetryAfter = time.Second
		return o
	case sendNotSent:
		return action.Outcome{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Reason: "dial_failed"}
	case sendBrokenHad:
		w.happen(d, keeps)
		return modelAnswer(d, 500, `{}`)
	case sendBroken:
		return modelAnswer(d, 500, `{}`)
	case sendDiesAfter:
		w.happen(d, keeps)
		n.die()
	case sendDies:
		n.die()
	}
	return lost
}

// answer is what the target says of an action. It looks at its ledger, and is honest about what it can see.
func (w *world) answer(d action.Dispatch) action.Outcome {
	if w.look == lookOff {
		return modelAnswer(d, 405, `{"error":"no look-ups"}`)
	}
	if w.look == lookAlike {
		return modelAnswer(d, 200, `{"data":[{"id":"somebody's","ref":"another"}]}`)
	}
	q, _ := url.ParseQuery(d.Operation.Query)
	for token, idem := range w.idem {
		if idem == "" || idem != q.Get("idem") {
			continue
		}
		for _, r := range w.rows[token] {
			if w.look != lookLags || w.gone-r.at >= modelLate {
				return modelAnswer(d, 200, `{"data":[`+r.body+`]}`)
			}
		}
	}
	return modelAnswer(d, 200, `{"data":[]}`)
}

func modelAnswer(d action.Dispatch, status int, body string) action.Outcome {
	v := d.Judge(action.Response{Status: status, Body: []byte(body), MediaType: "application/json"})
	o := action.Outcome{
		State: action.AttemptCompleted, Certainty: v.Certainty, Retry: v.Retry, BytesSent: 100, Status: status,
		Result: action.Result{Body: []byte(body), MediaType: "application/json", Complete: true, Size: int64(len(body))},
	}
	switch v.Certainty {
	case action.NoEffectProven:
		o.State, o.Reason = action.AttemptRefused, "refused_by_target"
	case action.Indeterminate:
		o.Reason = "ambiguous_answer"
	}
	return o
}

// A node is one gateway process on the store. When it dies, nothing that it does is on record any more.
type node struct {
	store.Store
	world *world

	mu   sync.Mutex
	dead bool
	in   int  // commits until it dies; 0 for never
	kept bool // the commit in which it dies is durable, and it never learns of that
}

func (n *node) die() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead = true
}

func (n *node) gone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dead
}

func (n *node) Commit(ctx context.Context, change func(store.Tx) error) error {
	n.mu.Lock()
	last := n.in == 1
	if n.in > 0 {
		n.in--
	}
	if last {
		n.dead = true
	}
	lost := n.dead && (!last || !n.kept)
	n.mu.Unlock()
	if lost {
		return store.ErrLatched
	}
	err := n.Store.Commit(ctx, change)
	if n.gone() && err == nil {
		return store.ErrLatched
	}
	return err
}

// Due goes by the clock of the store, as it does where both are the machine's.
func (n *node) Due(ctx context.Context, q store.Due) ([]action.ID, error) {
	q.Now = n.world.wall()
	return n.Store.Due(ctx, q)
}

func (n *node) Later(change func(store.Tx) error) error {
	if n.gone() {
		return store.ErrLatched
	}
	return n.Store.Later(change)
}
