package action

import "fmt"

// Transition is one legal move of an action. Its name is the row of docs/states.md.
type Transition string

// Move is a row of the table: from, to, what starts it and what must be durable before the next step.
type Move struct {
	Name    Transition
	From    State // "" for the first move
	To      State
	Trigger string
	Durable string
}

// The legal moves. T2 (an invalid request makes no action) and T23 (only the delivery changes) are no moves of the
// state and therefore not in the table that the store enforces.
const (
	T1  Transition = "T1"
	T3  Transition = "T3"
	T4  Transition = "T4"
	T5  Transition = "T5"
	T6  Transition = "T6"
	T7  Transition = "T7"
	T8  Transition = "T8"
	T9  Transition = "T9"
	T10 Transition = "T10"
	T11 Transition = "T11"
	T12 Transition = "T12"
	T13 Transition = "T13"
	T14 Transition = "T14"
	T15 Transition = "T15"
	T16 Transition = "T16"
	T17 Transition = "T17"
	T18 Transition = "T18"
	T19 Transition = "T19"
	T20 Transition = "T20"
	T21 Transition = "T21"
	T22 Transition = "T22"
)

// Moves is the whole table. docs/states.md is printed from it and the store refuses every other move.
var Moves = []Move{
	{T1, "", Accepted, "a valid call that matches no earlier action", "intent and action, accepted event"},
	{T3, Accepted, Authorized, "the ladder allows without asking", "policy record bound to the action"},
	{T4, Accepted, AwaitingApproval, "the ladder asks a person", "approval request"},
	{T5, Accepted, Rejected, "vault locked, or policy denies", "rejected event"},
	{T6, AwaitingApproval, Authorized, "approved, unexpired, binding unchanged", "approval decision"},
	{T7, AwaitingApproval, Rejected, "denied, revoked, expired or cancelled", "rejected event"},
	{T8, AwaitingApproval, AwaitingApproval, "the resolution changed, or the run is authorized and this use needs a person as well", "void, or the decision about the run, and new request"},
	{T9, Authorized, AwaitingApproval, "approval expired, or the binding changed before dispatch", "void event"},
	{T10, Authorized, Rejected, "revoked, cancelled, or vault locked before dispatch", "rejected event"},
	{T11, Authorized, Dispatched, "one winner by compare-and-set, binding checked again", "dispatched event, before the first byte"},
	{T12, Dispatched, Completed, "success evidence from the target", "outcome and result reference"},
	{T13, Dispatched, Failed, "a refusal that the contract says precedes any effect", "outcome"},
	{T14, Dispatched, Authorized, "refused under retry_when, or proved not sent where trying again at once can help; attempts are left", "end of the attempt"},
	{T15, Dispatched, Failed, "proved not sent, and no attempt is left or trying again at once cannot help", "outcome"},
	{T16, Dispatched, Unknown, "bytes left without a provable answer, or no live owner after a restart", "reason"},
	{T17, Unknown, Completed, "evidence of the effect: same-key answer, look-up, marker, late response", "evidence and result reference"},
	{T18, Unknown, Dispatched, "same-key resend in time, a read, an authoritative absence, or a reviewer's redo", "dispatched event"},
	{T19, Unknown, Unknown, "evidence inconclusive, or no way to get any", "reason"},
	{T20, Unknown, Failed, "authoritative absence and no redo, or a reviewer's finding", "evidence and decider"},
	{T21, Unknown, Completed, "a reviewer's finding", "evidence and decider"},
	{T22, Failed, Authorized, "an explicit retry of an action that was never sent, attempts left", "event"},
}

// move finds a row by its name.
func (t Transition) move() (Move, bool) {
	for _, m := range Moves {
		if m.Name == t {
			return m, true
		}
	}
	return Move{}, false
}

// From returns the state that the transition starts in, and To the one that it ends in.
func (t Transition) From() State { m, _ := t.move(); return m.From }

// To returns the state that the transition ends in.
func (t Transition) To() State { m, _ := t.move(); return m.To }

// Check refuses a transition that is not in the table, or that the action's facts rule out: the guards that need no more
// than the action itself.
func (a Action) Check(t Transition) error {
	m, ok := t.move()
	switch {
	case !ok:
		return fmt.Errorf("%s is no transition of an action", t)
	case a.State != m.From:
		return &IllegalMoveError{Action: a.ID, Transition: t, State: a.State}
	case t == T22 && a.FailureClass != NotSent:
		return &IllegalMoveError{Action: a.ID, Transition: t, State: a.State}
	case (t == T11 || t == T18 || t == T14 || t == T22) && a.AttemptsLeft() <= 0:
		return Errorf(CodeAttemptsExhausted, "%d attempts of %s were made, and its contract allows no more", a.Attempt, a.ID)
	}
	return nil
}

// An IllegalMoveError is a move that the table does not have. Losing a race looks the same: somebody else moved first.
type IllegalMoveError struct {
	Action     ID
	Transition Transition
	State      State
}

func (e *IllegalMoveError) Error() string {
	return fmt.Sprintf("%s of %s is not possible: it is %s", e.Transition, e.Action, e.State)
}
