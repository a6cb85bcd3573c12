package provider

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"
)

// perform does what the request asks for.
func (s *Server) perform(x *exchange) answer {
	method, at := x.r.Method, x.r.URL.EscapedPath()
	get, post := method == http.MethodGet, method == http.MethodPost
	switch {
	case post && at == "/v1/charges":
		return s.once(x, "charge", newCharge)
	case post && at == "/v1/jobs/charges":
		return s.takeJob(x)
	case get && matches("/v1/jobs/*", at):
		return s.findJob(path.Base(x.r.URL.Path))
	case post && at == "/v1/refund":
		return s.once(x, "refund", s.newRefund)
	case get && at == "/v1/charges":
		return s.findCharges(x.r.URL.Query())
	case get && matches("/v1/charges/*", at):
		return s.findCharge(path.Base(x.r.URL.Path))
	case mayChange(x.r) && matches("/v1/objects/*", at), post && matches("/v1/services/*/releases", at):
		return s.once(x, method+" "+at, newObject)
	case (get || post) && at == echoPath:
		return echo(x)
	}
	return refusal(http.StatusNotFound, "no_such_route", "nothing here answers "+method+" "+at)
}

func matches(pattern, at string) bool {
	ok, _ := path.Match(pattern, at)
	return ok
}

// creation is what a request makes, before it has a place in the ledger.
type creation struct {
	id     string
	status int
	object any
}

// once makes the effect, or finds the effect that an earlier request with the
// same key had. Either way the row is on disk before the answer is given.
func (s *Server) once(x *exchange, op string, create func(*exchange, time.Time) (creation, *answer)) answer {
	row, replayed, refused := s.findOrAppend(x, op, create)
	if refused != nil {
		return *refused
	}
	if err := s.ledger.sync(row.Seq); err != nil {
		return refusal(http.StatusInternalServerError, "ledger_failed", err.Error())
	}
	a := row.answer()
	if replayed {
		a.header = http.Header{"Idempotent-Replayed": {"true"}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
	return a
}

// findOrAppend is one step under the lock, so equal keys that come together
// cannot both find nothing.
func (s *Server) findOrAppend(x *exchange, op string, create func(*exchange, time.Time) (creation, *answer)) (row Row, replayed bool, refused *answer) {
	key, sum := x.r.Header.Get("Idempotency-Key"), digest(x.body)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now().UTC()

	if earlier, ok := s.remembered(key, now); ok {
		same := earlier.Op == op && earlier.RequestDigest == sum
		if !same && s.switches.Keys != AcceptChangedBody {
			no := refusal(http.StatusUnprocessableEntity, "idempotency_key_reused", "the key belongs to another request")
			return Row{}, false, &no
		}
		return earlier, true, nil
	}

	made, refused := create(x, now)
	if refused != nil {
		return Row{}, false, refused
	}
	row = Row{
		Seq:           int64(len(s.rows) + 1),
		Time:          now,
		Op:            op,
		ID:            made.id,
		Key:           key,
		Status:        made.status,
		RequestDigest: sum,
		RequestID:     x.id,
		Body:          encode(made.object),
	}
	if x.fault.Kind == CommitThenStatus {
		row.Status, row.Answer = x.fault.Status, string(x.fault.answer().body)
	}
	if err := s.ledger.append(row); err != nil {
		no := refusal(http.StatusInternalServerError, "ledger_failed", err.Error())
		return Row{}, false, &no
	}
	s.rows = append(s.rows, row)
	s.keys[key] = len(s.rows) - 1
	return row, false, nil
}

// remembered returns the row of the key while the key is kept and honoured.
func (s *Server) remembered(key string, now time.Time) (Row, bool) {
	i, ok := s.keys[key]
	if !ok || key == "" || s.switches.Keys == IgnoreKey {
		return Row{}, false
	}
	row := s.rows[i]
	return row, now.Sub(row.Time) < s.switches.KeyRetention
}

type charge struct {
	ID       string          `json:"id"`
	Object   string          `json:"object"`
	Amount   json.RawMessage `json:"amount"` // the digits of the request
	Currency string          `json:"currency"`
	Customer *string         `json:"customer"`
	Metadata json.RawMessage `json:"metadata"`
	Created  int64           `json:"created"`
}

type refund struct {
	ID       string          `json:"id"`
	Object   string          `json:"object"`
	Charge   string          `json:"charge"`
	Amount   json.RawMessage `json:"amount"`
	Metadata json.RawMessage `json:"metadata"`
	Created  int64           `json:"created"`
}

type object struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Value   any    `json:"value"` // the body as JSON, or as a string if it is none
	Created int64  `json:"created"`
}

func newCharge(x *exchange, now time.Time) (creation, *answer) {
	made := charge{}
	if refused := parse(x.body, &made); refused != nil {
		return creation{}, refused
	}
	made.ID, made.Object, made.Created = "ch_"+randomID(), "charge", now.Unix()
	if made.Currency == "" {
		return creation{}, invalid("currency", "a charge needs a currency")
	}
	if refused := checkMoney(made.Amount, &made.Metadata); refused != nil {
		return creation{}, refused
	}
	return creation{made.ID, http.StatusCreated, made}, nil
}

// newRefund runs under the lock, like every creation.
func (s *Server) newRefund(x *exchange, now time.Time) (creation, *answer) {
	made := refund{}
	if refused := parse(x.body, &made); refused != nil {
		return creation{}, refused
	}
	made.ID, made.Object, made.Created = "re_"+randomID(), "refund", now.Unix()
	if refused := checkMoney(made.Amount, &made.Metadata); refused != nil {
		return creation{}, refused
	}
	for _, row := range s.rows {
		if row.Op == "charge" && row.ID == made.Charge {
			return creation{made.ID, http.StatusCreated, made}, nil
		}
	}
	return creation{}, missing(made.Charge)
}

func newObject(x *exchange, now time.Time) (creation, *answer) {
	made := object{ID: "obj_" + randomID(), Object: "object", Method: x.r.Method, Path: x.r.URL.EscapedPath(), Created: now.Unix()}
	switch {
	case len(x.body) == 0:
	case json.Valid(x.body):
		made.Value = json.RawMessage(x.body)
	default:
		made.Value = string(x.body)
	}
	status := http.StatusOK
	if x.r.Method == http.MethodPost {
		status = http.StatusCreated
	}
	return creation{made.ID, status, made}, nil
}

func parse(body []byte, value any) *answer {
	if err := json.Unmarshal(body, value); err != nil {
		no := refusal(http.StatusBadRequest, "not_json", err.Error())
		return &no
	}
	return nil
}

var wholeNumber = regexp.MustCompile(`^[1-9][0-9]*$`)

// checkMoney checks what charges and refunds share. An absent metadata becomes
// an empty one.
func checkMoney(amount json.RawMessage, metadata *json.RawMessage) *answer {
	if !wholeNumber.Match(amount) {
		return invalid("amount", "an amount is a whole number above zero")
	}
	if len(*metadata) == 0 {
		*metadata = json.RawMessage("{}")
	}
	if (*metadata)[0] != '{' {
		return invalid("metadata", "metadata is an object")
	}
	return nil
}

func invalid(member, message string) *answer {
	no := refusal(http.StatusBadRequest, "invalid_"+member, message)
	return &no
}

func missing(id string) *answer {
	no := refusal(http.StatusNotFound, "resource_missing", "no such charge: "+id)
	return &no
}

// findCharge looks one charge up by its id.
func (s *Server) findCharge(id string) answer {
	charges, refused := s.visibleCharges()
	if refused != nil {
		return *refused
	}
	for _, row := range charges {
		if row.ID == id {
			return answer{status: http.StatusOK, body: row.Body}
		}
	}
	return *missing(id)
}

// findCharges lists the charges that have all the metadata asked for.
func (s *Server) findCharges(query url.Values) answer {
	wanted := make(map[string]string)
	for name, values := range query {
		key, ok := strings.CutPrefix(strings.TrimSuffix(name, "]"), "metadata[")
		if !ok || len(values) != 1 {
			// To ignore it would list charges that were not asked for.
			return *invalid("query", "charges are looked up by metadata[name]=value only")
		}
		wanted[key] = values[0]
	}
	charges, refused := s.visibleCharges()
	if refused != nil {
		return *refused
	}
	unfiltered := s.Switches().Lookup == LookupUnfiltered
	found := []json.RawMessage{}
	for _, row := range charges {
		if unfiltered || hasMetadata(row, wanted) {
			found = append(found, row.Body)
		}
	}
	return answer{status: http.StatusOK, body: encode(struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
	}{"list", found})}
}

// visibleCharges returns the charges that a look-up may show now.
func (s *Server) visibleCharges() ([]Row, *answer) {
	s.mu.Lock()
	switches, rows, now := s.switches, s.rows, s.Now()
	s.mu.Unlock()
	if switches.Lookup == LookupOff {
		no := refusal(http.StatusMethodNotAllowed, "lookup_off", "charges cannot be looked up")
		return nil, &no
	}
	// What a look-up shows must not vanish in a crash.
	if err := s.ledger.sync(int64(len(rows))); err != nil {
		no := refusal(http.StatusInternalServerError, "ledger_failed", err.Error())
		return nil, &no
	}
	var charges []Row
	for _, row := range rows {
		if row.Op == "charge" && now.Sub(row.Time) >= switches.LookupLag {
			charges = append(charges, row)
		}
	}
	return charges, nil
}

func hasMetadata(row Row, wanted map[string]string) bool {
	var made struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(row.Body, &made) != nil {
		return false
	}
	for key, want := range wanted {
		raw, ok := made.Metadata[key]
		var got string
		if json.Unmarshal(raw, &got) != nil {
			got = string(raw) // a number or the like, by its text
		}
		if !ok || got != want {
			return false
		}
	}
	return true
}

func echo(x *exchange) answer {
	return answer{status: http.StatusOK, body: encode(struct {
		Method  string   `json:"method"`
		URI     string   `json:"uri"`
		Headers []Header `json:"headers"`
		Body    string   `json:"body"`
	}{x.r.Method, x.r.RequestURI, x.headers, string(x.body)})}
}
