package eventlog

import (
	"strconv"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/journal"
)

// Edge types: how a span was reached.
const (
	ProtocolCall   = "protocol_call"
	ExternalAction = "external_action"
)

// members is a JSON object under construction. What is absent is left out.
type members = map[string]any

// Body gives the members that record a normal event, all but prev, seq and v. An action's event needs the action as it
// stands before it, and after, the hash of the previous event about the action; both are ignored for other events.
func Body(ev action.Event, about action.Action, after string) (map[string]any, error) {
	m := make(members, 20)
	m["event"], m["event_id"], m["time"] = string(ev.Kind), string(ev.ID), journal.FormatTime(ev.Time)
	put(m, "root_run_id", ev.Run)
	put(m, "intent_id", ev.Intent)
	put(m, "action_id", ev.Action)
	put(m, "attempt_id", ev.Attempt)
	put(m, "call_id", ev.Call)
	put(m, "trace_id", ev.Trace.TraceID)
	put(m, "span_id", ev.Trace.SpanID)
	put(m, "parent_span_id", ev.Trace.ParentSpanID)
	switch {
	case ev.RunBody != nil:
		runMembers(m, *ev.RunBody)
	case ev.CallBody != nil:
		m["edge_type"] = ProtocolCall
		callMembers(m, *ev.CallBody)
	case ev.IntentBody != nil:
		m["intent"] = intentMembers(*ev.IntentBody)
	case ev.ReadBody != nil:
		readMembers(m, *ev.ReadBody)
	case ev.RevokedBody != nil && ev.Action == "":
		m["revocation"] = revocationMembers(*ev.RevokedBody)
	case ev.AcceptedBody != nil:
		about = *ev.AcceptedBody
		fallthrough
	default:
		if err := resolved(ev, about); err != nil {
			return nil, err
		}
		m["edge_type"] = ExternalAction
		m["actor"] = actorMembers(about.Actor)
		put(m, "after", after)
		actionMembers(m, ev, about)
	}
	return m, nil
}

// put adds a member that is not empty.
func put[T ~string](m members, name string, value T) {
	if value != "" {
		m[name] = string(value)
	}
}

func putTime(m members, name string, t time.Time) {
	if !t.IsZero() {
		m[name] = journal.FormatTime(t)
	}
}

func putTrue(m members, name string, value bool) {
	if value {
		m[name] = true
	}
}

func actorMembers(actor string) members {
	kind, identity, _ := strings.Cut(actor, ":")
	return members{"kind": kind, "identity": identity}
}

func runMembers(m members, run action.Run) {
	actor := members{"kind": run.Actor.Kind, "identity": run.Actor.Identity}
	put(actor, "strength", run.Actor.Strength)
	putTrue(actor, "shared", run.Actor.Shared)
	m["actor"] = actor

	body := members{"started_at": journal.FormatTime(run.Started)}
	put(body, "key", run.Key)
	m["run"] = body

	if e := run.Actor.Evidence; e != (action.Evidence{}) {
		process := members{"pid": int64(e.PID)}
		put(process, "boot_id", e.BootID)
		put(process, "executable", e.Executable)
		put(process, "digest", e.Digest)
		put(process, "via", e.Via)
		if e.StartTime != 0 { // a full 64-bit count: more than a number of the format can hold
			process["start_ticks"] = strconv.FormatUint(e.StartTime, 10)
		}
		m["process"] = process
	}
}

func callMembers(m members, c action.CallSeen) {
	actor := members{}
	if c.Actor != "" {
		actor = actorMembers(c.Actor)
	}
	put(actor, "strength", c.Strength)
	if len(actor) > 0 {
		m["actor"] = actor
	}
	call := members{}
	put(call, "transport", c.Protocol.Transport)
	put(call, "era", c.Protocol.Era)
	put(call, "request_id", c.Protocol.RequestID)
	put(call, "session", c.Protocol.Session)
	put(call, "client", c.Protocol.Client)
	put(call, "upstream_context_source", c.Upstream.Source)
	put(call, "traceparent", c.Upstream.Traceparent)
	put(call, "tracestate", c.Upstream.Tracestate)
	put(call, "idem_key", c.IdemKey)
	put(call, "match", c.Match)
	put(call, "prior_state", c.Prior)
	put(call, "why", c.Why)
	put(call, "code", c.Code)
	if c.Times != 0 {
		call["times"] = int64(c.Times)
	}
	m["call"] = call
}

func readMembers(m members, r action.ContentRead) {
	actor := actorMembers(r.Reader)
	put(actor, "strength", r.Strength)
	m["actor"] = actor
	read := members{"kinds": r.Kinds}
	put(read, "why", r.Why)
	m["read"] = read
}

func intentMembers(i action.Intent) members {
	m := members{
		"tool":      i.Tool,
		"idem_key":  i.IdemKey,
		"step":      i.Step,
		"logged_at": journal.FormatTime(i.At),
	}
	put(m, "contract", i.Contract)
	put(m, "tool_call_id", i.ToolCallID)
	put(m, "key_source", i.KeySource)
	put(m, "arguments", i.Arguments)
	return m
}
