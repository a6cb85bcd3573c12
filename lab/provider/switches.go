package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// DefaultKeyRetention is how long a key is kept if no switch says otherwise.
const DefaultKeyRetention = 24 * time.Hour

// Switches say how the provider behaves. The zero value is a good provider:
// it honours keys for a day, answers look-ups at once and has no faults.
type Switches struct {
	Keys         KeyMode       `json:"keys"`
	KeyRetention time.Duration `json:"key_retention"` // in JSON a string such as "2s"; zero is DefaultKeyRetention
	Lookup       Lookup        `json:"lookup"`
	LookupLag    time.Duration `json:"lookup_lag"` // how long an effect stays invisible to look-ups
	Jobs         JobMode       `json:"jobs"`
	JobTime      time.Duration `json:"job_time"` // how long a job runs

	// Faults is a queue. A request meets the first fault that fits it, and a
	// fault leaves the queue after its last time.
	Faults []Fault `json:"faults"`
}

// KeyMode is what an Idempotency-Key is worth.
type KeyMode string

// The zero KeyMode means HonourKey.
const (
	HonourKey         KeyMode = "honour_key"          // stored answer for the same request, refusal for another
	IgnoreKey         KeyMode = "ignore_key"          // every request has its effect
	AcceptChangedBody KeyMode = "accept_changed_body" // stored answer, also for another body
)

// Lookup says whether effects can be looked up afterwards.
type Lookup string

// The zero Lookup means LookupOn.
const (
	LookupOn  Lookup = "on"
	LookupOff Lookup = "off" // GET on charges is answered 405

	// LookupUnfiltered lists every charge, whatever was searched for.
	LookupUnfiltered Lookup = "unfiltered"
)

// JobMode says how jobs end. It counts for those that run, too.
type JobMode string

// The zero JobMode means FinishJobs.
const (
	FinishJobs JobMode = "finish" // done after JobTime, with the effect
	CancelJobs JobMode = "cancel" // cancelled after JobTime, without one
	HoldJobs   JobMode = "hold"   // they run until the switches are set anew
)

// Fault is one way of misbehaving.
type Fault struct {
	Kind  Kind   `json:"kind"`
	Times int    `json:"times,omitempty"` // for so many requests; zero: until the switches are set anew
	Path  string `json:"path,omitempty"`  // only where the path starts so

	Method string `json:"method,omitempty"` // only for this method

	Status     int    `json:"status,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"` // sent as it is
	Location   string `json:"location,omitempty"`
	Body       string `json:"body,omitempty"`

	// Delay is waited after reading the request and before anything else,
	// for every kind that reads but CommitThenDelay. A client that leaves
	// does not end the wait.
	Delay time.Duration `json:"delay,omitempty"`
}

// Kind names a fault.
type Kind string

// Faults that have no effect.
const (
	ResetBeforeRead Kind = "reset_before_read" // TCP reset, the body is not read
	Early413        Kind = "early_413"         // answer 413 and close, the body is not read
	DropAfterRead   Kind = "drop_after_read"   // close without an answer
	HangAfterRead   Kind = "hang_after_read"   // no answer until the switches are set anew, then 503
	AnswerStatus    Kind = "status"            // answer Status, with RetryAfter and Body if given
	Redirect        Kind = "redirect"          // answer Status with Location
)

// Faults after the effect. They pass over requests that can have none.
const (
	CommitThenDrop   Kind = "commit_then_drop"   // close without an answer
	CommitThenHang   Kind = "commit_then_hang"   // hold the answer until the switches are set anew
	CommitThenDelay  Kind = "commit_then_delay"  // answer after Delay
	CommitThenStatus Kind = "commit_then_status" // answer Status, which is stored under the key
)

// Faults that change only when or how the usual answer comes.
const (
	Delay        Kind = "delay"         // answer after Delay
	TruncateBody Kind = "truncate_body" // full header, half the body, then close
	EchoHeaders  Kind = "echo_headers"  // request headers come back in X-Echo, Set-Cookie and Location
	GzipEcho     Kind = "gzip_echo"     // the same, and the body is gzipped, asked for or not
)

var kinds = []Kind{
	ResetBeforeRead, Early413, DropAfterRead, HangAfterRead, AnswerStatus, Redirect,
	CommitThenDrop, CommitThenHang, CommitThenDelay, CommitThenStatus,
	Delay, TruncateBody, EchoHeaders, GzipEcho,
}

// followsEffect reports whether the fault makes no sense without an effect.
func (k Kind) followsEffect() bool {
	return k == CommitThenDrop || k == CommitThenHang || k == CommitThenDelay || k == CommitThenStatus
}

// fits reports whether the fault is meant for the request.
func (f Fault) fits(r *http.Request) bool {
	if f.Method != "" && f.Method != r.Method {
		return false
	}
	if f.Kind.followsEffect() && !mayChange(r) {
		return false
	}
	return strings.HasPrefix(r.URL.Path, f.Path)
}

// mayChange reports whether the request can have an effect.
func mayChange(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.URL.Path != echoPath
	}
	return false
}

// takeFault returns the first fault that fits and counts it down.
// The zero Fault means that there is none.
func (s *Switches) takeFault(r *http.Request) Fault {
	i := slices.IndexFunc(s.Faults, func(f Fault) bool { return f.fits(r) })
	if i < 0 {
		return Fault{}
	}
	fault := s.Faults[i]
	switch fault.Times {
	case 0:
	case 1:
		s.Faults = slices.Delete(s.Faults, i, i+1)
	default:
		s.Faults[i].Times--
	}
	return fault
}

// complete fills in what was left out and refuses what has no meaning.
func (s Switches) complete() (Switches, error) {
	s.Faults = append([]Fault{}, s.Faults...)
	if s.Keys == "" {
		s.Keys = HonourKey
	}
	if s.Lookup == "" {
		s.Lookup = LookupOn
	}
	if s.Jobs == "" {
		s.Jobs = FinishJobs
	}
	if s.KeyRetention == 0 {
		s.KeyRetention = DefaultKeyRetention
	}
	if !slices.Contains([]KeyMode{HonourKey, IgnoreKey, AcceptChangedBody}, s.Keys) {
		return s, fmt.Errorf("unknown key mode %q", s.Keys)
	}
	if !slices.Contains([]Lookup{LookupOn, LookupOff, LookupUnfiltered}, s.Lookup) {
		return s, fmt.Errorf("unknown lookup %q", s.Lookup)
	}
	if !slices.Contains([]JobMode{FinishJobs, CancelJobs, HoldJobs}, s.Jobs) {
		return s, fmt.Errorf("unknown job mode %q", s.Jobs)
	}
	if s.KeyRetention < 0 || s.LookupLag < 0 || s.JobTime < 0 {
		return s, errors.New("key_retention, lookup_lag and job_time cannot be negative")
	}
	for i, fault := range s.Faults {
		if err := fault.check(); err != nil {
			return s, fmt.Errorf("fault %d (%s): %w", i+1, fault.Kind, err)
		}
	}
	return s, nil
}

func (f Fault) check() error {
	switch {
	case !slices.Contains(kinds, f.Kind):
		return errors.New("unknown kind")
	case f.Times < 0 || f.Delay < 0:
		return errors.New("times and delay cannot be negative")
	case (f.Kind == Delay || f.Kind == CommitThenDelay) && f.Delay == 0:
		return errors.New("needs a delay")
	case f.Kind == Redirect && (f.Status < 300 || f.Status > 399 || f.Location == ""):
		return errors.New("needs a status 300 to 399 and a location")
	case (f.Kind == AnswerStatus || f.Kind == CommitThenStatus) && (f.Status < 200 || f.Status > 599):
		return errors.New("needs a status 200 to 599")
	}
	return nil
}

// MarshalJSON writes durations as text such as "2s".
func (s Switches) MarshalJSON() ([]byte, error) {
	type plain Switches
	return json.Marshal(struct {
		plain
		KeyRetention string `json:"key_retention"`
		LookupLag    string `json:"lookup_lag"`
		JobTime      string `json:"job_time"`
	}{plain(s), s.KeyRetention.String(), s.LookupLag.String(), s.JobTime.String()})
}

// UnmarshalJSON reads durations as text and refuses unknown members.
func (s *Switches) UnmarshalJSON(data []byte) error {
	type plain Switches
	var in struct {
		plain
		KeyRetention text `json:"key_retention"`
		LookupLag    text `json:"lookup_lag"`
		JobTime      text `json:"job_time"`
	}
	if err := decodeStrictly(data, &in); err != nil {
		return err
	}
	*s = Switches(in.plain)
	s.KeyRetention, s.LookupLag = time.Duration(in.KeyRetention), time.Duration(in.LookupLag)
	s.JobTime = time.Duration(in.JobTime)
	return nil
}

// MarshalJSON writes the delay as text such as "2s".
func (f Fault) MarshalJSON() ([]byte, error) {
	type plain Fault
	out := struct {
		plain
		Delay string `json:"delay,omitempty"`
	}{plain: plain(f)}
	if f.Delay != 0 {
		out.Delay = f.Delay.String()
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads the delay as text and refuses unknown members.
func (f *Fault) UnmarshalJSON(data []byte) error {
	type plain Fault
	var in struct {
		plain
		Delay text `json:"delay"`
	}
	if err := decodeStrictly(data, &in); err != nil {
		return err
	}
	*f = Fault(in.plain)
	f.Delay = time.Duration(in.Delay)
	return nil
}

// text is a duration in the form of time.ParseDuration.
type text time.Duration

func (t *text) UnmarshalText(data []byte) error {
	d, err := time.ParseDuration(string(data))
	*t = text(d)
	return err
}

func decodeStrictly(data []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(value)
}
