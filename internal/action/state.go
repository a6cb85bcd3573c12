package action

// State says what is known of an action's effect. What the agent received is another dimension: Delivery.
type State string

// The states of an action. The zero value is no state at all, and no move starts or ends there but the first.
const (
	Accepted         State = "accepted"          // validated, resolved, identified, durable
	AwaitingApproval State = "awaiting_approval" // a bound approval request is open
	Authorized       State = "authorized"        // permitted by the ladder or by a bound approval
	Dispatched       State = "dispatched"        // the plan is durable and an attempt was handed to an executor
	Unknown          State = "unknown"           // dispatched, and what came of it cannot be proved
	Completed        State = "completed"         // the effect is proved, once
	Failed           State = "failed"            // proved to be without effect
	Rejected         State = "rejected"          // authorization refused or withdrawn
)

// States lists every state in the order of an action's life.
var States = []State{Accepted, AwaitingApproval, Authorized, Dispatched, Unknown, Completed, Failed, Rejected}

// Effect answers the question that every state exists for.
type Effect string

// May the effect have happened?
const (
	EffectNo    Effect = "no"
	EffectMaybe Effect = "maybe"
	EffectOnce  Effect = "yes, once"
)

// Effect says whether an action in this state may have had its effect. An unlisted state may have had it.
func (s State) Effect() Effect {
	switch s {
	case Accepted, AwaitingApproval, Authorized, Failed, Rejected:
		return EffectNo
	case Completed:
		return EffectOnce
	default:
		return EffectMaybe
	}
}

// Final reports whether no evidence can change what is known of the effect. A failed action that was never sent may
// still be tried again (T22), but what is known of it stays true.
func (s State) Final() bool { return s == Completed || s == Failed || s == Rejected }

// Coarse is the five-valued view that the table tool_operations shows.
func (s State) Coarse() string {
	switch s {
	case Accepted, AwaitingApproval, Authorized:
		return "PENDING"
	case Dispatched:
		return "INVOKED"
	case Completed:
		return "COMMITTED"
	case Failed, Rejected:
		return "FAILED"
	default:
		return "UNKNOWN"
	}
}

// FailureClass says what proved that a failed action had no effect.
type FailureClass string

// Classes of failure.
const (
	NotSent           FailureClass = "not_sent"            // no byte left for the target
	RejectedByTarget  FailureClass = "rejected_by_target"  // a refusal that the contract says precedes any effect
	NoEffectConfirmed FailureClass = "no_effect_confirmed" // looked up, or found by a reviewer
)

// RejectReason says who or what refused a rejected action.
type RejectReason string

// Reasons of rejection. Expired and Cancelled are no decisions: a later match opens a new action. VaultLocked binds only
// the call that met it.
const (
	Denied      RejectReason = "denied"
	VaultLocked RejectReason = "vault_locked"
	Policy      RejectReason = "policy"
	Revoked     RejectReason = "revoked"
	Expired     RejectReason = "expired"
	Cancelled   RejectReason = "cancelled"
)

// Decision reports whether somebody decided about the action, so that a repeat gets the same answer.
func (r RejectReason) Decision() bool { return r == Denied || r == Policy || r == Revoked }

// Recovery is what an unknown action waits for.
type Recovery string

// Ways out of unknown.
const (
	Reconciling    Recovery = "reconciling"     // deed is looking for evidence by itself
	ReviewRequired Recovery = "review_required" // only a person's recorded decision can settle it
)

// Delivery says what the agent received, apart from what happened at the target.
type Delivery string

// The deliveries. Most transports cannot prove arrival: they end at DeliveryUnconfirmed.
const (
	DeliveryNone        Delivery = "none"
	DeliveryPending     Delivery = "pending"
	DeliveryInterrupted Delivery = "interrupted"
	DeliveryUnconfirmed Delivery = "unconfirmed"
	Delivered           Delivery = "delivered"
)

// Deliveries lists every delivery.
var Deliveries = []Delivery{DeliveryNone, DeliveryPending, DeliveryInterrupted, DeliveryUnconfirmed, Delivered}

// CanBecome reports whether a delivery may move to next. Once delivered it stays so: later evidence cannot take back
// what the agent has shown that it has.
func (d Delivery) CanBecome(next Delivery) bool {
	switch next {
	case DeliveryPending:
		return d == DeliveryNone
	case DeliveryInterrupted, DeliveryUnconfirmed:
		return d == DeliveryPending || d == DeliveryInterrupted || d == DeliveryUnconfirmed
	case Delivered:
		return d != Delivered
	default:
		return false
	}
}

// Shown names the pair of state and delivery as people read it.
func Shown(s State, d Delivery) string {
	if s == Completed && d != Delivered {
		return "completed_result_not_delivered"
	}
	return string(s)
}

// AttemptState is the life of one send.
type AttemptState string

// States of an attempt. AttemptSent is the state of an attempt whose end nobody recorded: a crash left it so.
const (
	AttemptPrepared       AttemptState = "prepared"
	AttemptNotSent        AttemptState = "not_sent"
	AttemptSent           AttemptState = "sent"
	AttemptCompleted      AttemptState = "completed"
	AttemptRefused        AttemptState = "refused"
	AttemptTimeout        AttemptState = "timeout"
	AttemptTransportError AttemptState = "transport_error"
)

// AttemptStates lists every attempt state.
var AttemptStates = []AttemptState{
	AttemptPrepared, AttemptNotSent, AttemptSent, AttemptCompleted, AttemptRefused, AttemptTimeout, AttemptTransportError,
}

// Certainty is what an attempt proves about the effect. The zero value proves nothing.
type Certainty string

// Certainties.
const (
	Indeterminate  Certainty = ""
	EffectProven   Certainty = "effect_proven"
	NoEffectProven Certainty = "no_effect_proven"
)

// String spells the zero value out, since records show it in words.
func (c Certainty) String() string {
	if c == Indeterminate {
		return "indeterminate"
	}
	return string(c)
}
