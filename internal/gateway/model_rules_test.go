package gateway_test

import (
	"fmt"
	"slices"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/gateway/rig"
)

// modelEdges are the legal moves, written down from the requirements (4.3) and not from the code.
var modelEdges = map[string][2]action.State{
	"T3": {"accepted", "authorized"}, "T4": {"accepted", "awaiting_approval"}, "T5": {"accepted", "rejected"},
	"T6": {"awaiting_approval", "authorized"}, "T7": {"awaiting_approval", "rejected"},
	"T8": {"awaiting_approval", "awaiting_approval"}, "T9": {"authorized", "awaiting_approval"},
	"T10": {"authorized", "rejected"}, "T11": {"authorized", "dispatched"}, "T12": {"dispatched", "completed"},
	"T13": {"dispatched", "failed"}, "T14": {"dispatched", "authorized"}, "T15": {"dispatched", "failed"},
	"T16": {"dispatched", "unknown"}, "T17": {"unknown", "completed"}, "T18": {"unknown", "dispatched"},
	"T19": {"unknown", "unknown"}, "T20": {"unknown", "failed"}, "T21": {"unknown", "completed"}, "T22": {"failed", "authorized"},
}

// An asking is what one call asks for.
type asking struct{ run, tool, customer, key string }

// A known action is what the model knows of one.
type known struct {
	asking
	id        action.ID
	state     action.State
	recovery  string
	class     string // of a failure, or the reason of a rejection
	delivery  string
	finished  time.Time
	first     time.Duration // when it was first sent, in true time
	attempt   int
	redos     int
	doubted   bool // some send of it is unexplained
	abandoned bool
	byPerson  bool // a person said what became of it, and answers for that
	proved    bool // absent, as its target may say, since the last send
	found     bool
	refused   bool // its only send was refused, as was learned late
}

func (k *known) final() bool {
	return k.state == action.Completed || k.state == action.Failed || k.state == action.Rejected
}

func (k *known) inDoubt() bool {
	return k.tool != "read" && !k.abandoned && !k.final() && (k.state == action.Unknown || k.doubted)
}

// A model follows the exported journal, and says what is wrong with it.
type model struct {
	world  *world
	wrong  func(format string, args ...any)
	all    []*known
	keys   map[string]*known
	newest time.Time
	next   int64
	moves  map[string]int
	log    []string
}

func (m *model) find(id action.ID) *known {
	for _, k := range m.all {
		if k.id == id {
			return k
		}
	}
	return nil
}

// now is the time by which the gateway reckons windows.
func (m *model) now() time.Time {
	if wall := m.world.wall(); wall.After(m.newest) {
		return wall
	}
	return m.newest
}

func (m *model) behind() bool { return m.world.wall().Before(m.newest) }

// follow takes in one event. by is the call of this step, if there is one.
func (m *model) follow(e rig.Event, by asking) {
	k := m.find(action.ID(e.Text("action_id")))
	m.log = append(m.log, fmt.Sprintf("%s %s %s %s %s\n", e.Text("time"), e.Text("action_id"), e.Kind(), e.Text("action.transition"), e.Text("action.reason")+e.Text("observation.finding")))
	switch e.Kind() {
	case "action.accepted":
		k = &known{asking: by, id: action.ID(e.Text("action_id")), state: action.Accepted, delivery: "none"}
		m.all = append(m.all, k)
		m.keep(by, k)
	case "call.attached":
		m.keep(by, k)
	case "action.delivery":
		k.delivery = e.Text("delivery.to")
	case "action.observed":
		m.observed(k, e)
	}
	if transition := e.Text("action.transition"); transition != "" {
		m.move(k, transition, e)
	}
	if t, err := time.Parse(time.RFC3339Nano, e.Text("time")); err == nil {
		m.newest = t
	}
}

func (m *model) keep(by asking, k *known) {
	if name := by.run + "/" + by.key; by.key != "" && m.keys[name] == nil {
		m.keys[name] = k
	}
}

func (m *model) observed(k *known, e rig.Event) {
	if e.Text("observation.kind") == "stale_outcome" {
		return
	}
	switch e.Text("observation.finding") {
	case "found":
		k.found = true
	case "absent_settled":
		k.proved = true
		if k.tool != "asked" {
			m.wrong("%s of %s: absence counts as proved, and nobody promised that", k.id, k.tool)
		}
		if n := m.world.effects(k.id, k.attempt); n != 0 {
			m.wrong("%s counts as absent with %d effects", k.id, n)
		}
	case "ended_without_effect":
		k.refused = true
	}
}

func (m *model) move(k *known, transition string, e rig.Event) {
	edge, legal := modelEdges[transition]
	from, to := action.State(e.Text("action.from_state")), action.State(e.Text("action.state"))
	if !legal || edge[0] != from || edge[1] != to || k.state != from {
		m.wrong("%s of %s goes from %s to %s, and it was %s", transition, k.id, from, to, k.state)
	}
	m.moves[transition]++
	decision, effects := e.Text("review.decision"), m.world.effects(k.id, k.attempt)
	m.mayLeaveUnknown(k, transition, decision)
	switch transition {
	case "T11", "T18":
		if k.attempt == 0 {
			k.first = m.world.gone
		}
		k.attempt++
		k.proved, k.found, k.refused = false, false, false
		if decision == "redo" {
			k.redos++
		}
		if k.attempt > modelSends+k.redos {
			m.wrong("%s is sent for the %d. time", k.id, k.attempt)
		}
	case "T12", "T17":
		if k.tool != "read" && effects == 0 {
			m.wrong("%s completes by %s without an effect", k.id, transition)
		}
	case "T13", "T15", "T20":
		if k.tool != "read" && effects > 0 && decision == "" {
			m.wrong("%s fails by %s with %d effects", k.id, transition, effects)
		}
	case "T14":
		if k.tool != "read" && effects > 0 {
			m.wrong("%s may be sent again as if nothing had happened, with %d effects", k.id, effects)
		}
	case "T22":
		if k.class != "not_sent" {
			m.wrong("%s is tried again after %s", k.id, k.class)
		}
	}
	k.state, k.recovery = to, e.Text("action.recovery")
	k.class = e.Text("action.failure_class") + e.Text("action.reject_reason")
	switch to {
	case action.Unknown:
		k.doubted = true
	case action.Completed, action.Failed, action.Rejected:
		k.doubted, k.finished = false, m.now()
		if k.delivery == "none" {
			k.delivery = "pending"
		}
	}
	k.abandoned = k.abandoned || decision == "abandon"
	k.byPerson = k.byPerson || decision == "happened" || decision == "absent"
}

// mayLeaveUnknown holds a way out of unknown against the reasons that there are for it.
func (m *model) mayLeaveUnknown(k *known, transition, decision string) {
	if modelEdges[transition][0] != action.Unknown || transition == "T19" {
		return
	}
	if k.abandoned {
		m.wrong("%s leaves unknown by %s after a person closed it", k.id, transition)
	}
	allowed := decision != ""
	switch transition {
	case "T17":
		allowed = k.found
	case "T18":
		inTime := m.world.gone-k.first < modelKept && !m.behind()
		allowed = allowed || k.tool == "read" || k.tool == "keyed" && inTime || k.tool == "asked" && k.proved
	case "T20":
		allowed = allowed || k.proved || k.refused && k.attempt == 1
	}
	if !allowed {
		m.wrong("%s of %s leaves unknown by %s without a reason", k.id, k.tool, transition)
	}
}

// A forecast is what has to become of a call.
type forecast struct {
	kind  string // "attached", "held", "new" or "refused"
	prior []action.ID
}

func (f forecast) String() string { return fmt.Sprintf("%s %v", f.kind, f.prior) }

// forecast says what has to become of a call, from the requirements (4.4 and UN, RM).
func (m *model) forecast(q asking) forecast {
	if k := m.keys[q.run+"/"+q.key]; q.key != "" && k != nil {
		if k.tool != q.tool || k.customer != q.customer {
			return forecast{kind: "refused"}
		}
		return forecast{"attached", []action.ID{k.id}}
	}
	var over *known
	for _, k := range slices.Backward(m.all) {
		if k.run != q.run || k.tool != q.tool || k.customer != q.customer {
			continue
		}
		if !k.final() && !k.abandoned {
			return forecast{"attached", []action.ID{k.id}}
		}
		window := modelWindow
		if q.tool == "read" {
			window = 0
		}
		unproved := k.state == action.Completed && k.delivery != "delivered" || k.state == action.Failed && k.class == "not_sent"
		if over == nil && unproved && m.now().Before(k.finished.Add(window)) {
			over = k
		}
	}
	if over != nil {
		return forecast{"attached", []action.ID{over.id}}
	}
	var holders []action.ID
	for _, k := range m.all {
		if k.inDoubt() && k.customer == q.customer && q.tool != "read" {
			holders = append(holders, k.id)
		}
	}
	if holders != nil {
		return forecast{"held", holders}
	}
	return forecast{kind: "new"}
}

// answered holds what a caller was told against what the target's ledger and the journal say.
func (m *model) answered(f forecast, a action.Answer, err error) {
	if err != nil {
		if f.kind != "refused" {
			m.wrong("a call that had to be %s was refused: %v", f, err)
		}
		return
	}
	got := forecast{kind: "new"}
	switch {
	case a.Held:
		got = forecast{"held", []action.ID{a.Action.ID}}
	case a.Attached:
		got = forecast{"attached", []action.ID{a.Action.ID}}
	}
	if got.kind != f.kind || f.kind != "new" && !slices.Contains(f.prior, a.Action.ID) {
		m.wrong("a call had to be %s and is %s", f, got)
	}
	k := m.find(a.Action.ID)
	if k == nil || a.Held {
		return
	}
	if k.state != a.Action.State {
		m.wrong("%s is %s, and its caller is told %s", k.id, k.state, a.Action.State)
	}
	if k.tool != "read" && !k.byPerson {
		m.oracle(k, a)
	}
}

// oracle is that of the crash lab: lost, false failure and wrong result. Duplicates are counted at the end.
func (m *model) oracle(k *known, a action.Answer) {
	effects := m.world.effects(k.id, k.attempt)
	switch {
	case a.Code == "" && effects == 0:
		m.wrong("lost: %s is acknowledged, and the target has no effect of it", k.id)
	case a.Code == "" && string(a.Result) != m.world.first(k.id) && !k.looked(string(a.Result), m.world.first(k.id)) && k.redos == 0:
		m.wrong("wrong result: %s is answered with %s, and the ledger has %s", k.id, a.Result, m.world.first(k.id))
	case a.Action.State == action.Failed && effects > 0:
		m.wrong("false failure: %s is told to have failed, with %d effects", k.id, effects)
	}
}

// looked reports whether a result is a look-up's whole answer about a row.
func (k *known) looked(result, body string) bool { return result == `{"data":[`+body+`]}` }

// bounded counts the effects of every action. Beyond the first there is one for each redo at the most.
func (m *model) bounded() {
	for _, k := range m.all {
		if n := m.world.effects(k.id, k.attempt); k.tool != "read" && n > 1+k.redos {
			m.wrong("duplicate: %s of %s has %d effects after %d redos", k.id, k.tool, n, k.redos)
		}
	}
}
