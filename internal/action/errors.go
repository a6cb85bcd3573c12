package action

import "fmt"

// Code names an error for machines. The list is closed: every front door translates each of them once.
type Code string

// The codes. Each says something else about what to do next, so that no agent is led to one retry rule for all.
const (
	CodeInvalidArguments   Code = "INVALID_ARGUMENTS"
	CodeUnknownTool        Code = "UNKNOWN_TOOL"
	CodeUnauthenticated    Code = "UNAUTHENTICATED"
	CodeNoSuchAction       Code = "NO_SUCH_ACTION"
	CodeKeyInvalid         Code = "IDEMPOTENCY_KEY_INVALID"
	CodeKeyReused          Code = "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_ARGS"
	CodeRepeatInvalid      Code = "REPEAT_OF_INVALID"
	CodeRepeatUsed         Code = "REPEAT_OF_ALREADY_USED"
	CodeHeld               Code = "HELD_FOR_OPEN_ACTION"
	CodeInProgress         Code = "IN_PROGRESS"
	CodeOutcomeUnknown     Code = "OUTCOME_UNKNOWN"
	CodeNeedsApproval      Code = "NEEDS_HUMAN_APPROVAL"
	CodeApprovalVoid       Code = "APPROVAL_VOID"
	CodeVaultLocked        Code = "VAULT_LOCKED"
	CodeRejected           Code = "REJECTED"
	CodeTargetRefused      Code = "TARGET_REFUSED"
	CodePreviouslyFailed   Code = "OPERATION_PREVIOUSLY_FAILED"
	CodeNotSent            Code = "NOT_SENT"
	CodeTryLater           Code = "TRY_LATER"
	CodeAttemptsExhausted  Code = "ATTEMPTS_EXHAUSTED"
	CodeApprovalRefused    Code = "APPROVAL_REFUSED"
	CodeReviewRefused      Code = "REVIEW_REFUSED"
	CodeUndoRefused        Code = "UNDO_REFUSED"
	CodeResultExpired      Code = "RESULT_EXPIRED"
	CodeContentErased      Code = "CONTENT_ERASED"
	CodeOverloaded         Code = "OVERLOADED"
	CodeJournalUnavailable Code = "JOURNAL_UNAVAILABLE"
	CodeInternal           Code = "INTERNAL"
)

// Advice is what a code tells a caller who wonders about trying again.
type Advice struct {
	Retryable bool // the same call may be sent again, unchanged, and deed keeps it to one effect
	EffectMay bool // the effect may have happened
	Meaning   string
}

// Codes is the closed list with the advice of each. docs/errors.md is printed from it.
var Codes = map[Code]Advice{
	CodeInvalidArguments:   {false, false, "The arguments do not fit the tool's input. Nothing was done."},
	CodeUnknownTool:        {false, false, "No contract has this name. Nothing was done."},
	CodeUnauthenticated:    {false, false, "The caller could not be identified. Nothing was done."},
	CodeNoSuchAction:       {false, false, "No action of the caller has this id. Nothing was done, and nothing is said of anybody else's."},
	CodeKeyInvalid:         {false, false, "A part of the caller's key is empty, too long or of the wrong type. Nothing was done."},
	CodeKeyReused:          {false, false, "This key belongs to an earlier call with other arguments. Nothing was done."},
	CodeRepeatInvalid:      {false, false, "repeat_of names no completed call of yours with these arguments. Nothing was done."},
	CodeRepeatUsed:         {false, false, "This repeat_of was used already. Nothing was done."},
	CodeHeld:               {true, false, "An earlier action stands in the way until its outcome is settled. Nothing new was done."},
	CodeInProgress:         {true, true, "The action is running. Ask again with the same call."},
	CodeOutcomeUnknown:     {true, true, "It is not known whether the effect happened. The same call attaches and sends nothing by itself."},
	CodeNeedsApproval:      {true, false, "A person has to decide first."},
	CodeApprovalVoid:       {false, false, "The operation is no longer the one that was approved. Nothing was sent."},
	CodeVaultLocked:        {true, false, "The credentials are locked. Nothing was sent."},
	CodeRejected:           {false, false, "The action was refused. Nothing was sent."},
	CodeTargetRefused:      {false, false, "The target refused the action before any effect."},
	CodePreviouslyFailed:   {false, false, "The action failed before without effect; this is the recorded answer."},
	CodeNotSent:            {true, false, "Nothing left for the target. The same call tries again."},
	CodeTryLater:           {true, false, "Nothing was done, and nothing stands against doing it later: the target asked to come later, or deed sends nothing new at the moment."},
	CodeAttemptsExhausted:  {false, false, "The contract allows no further attempt."},
	CodeApprovalRefused:    {false, false, "The decision does not fit the request as it is now, or its signature counts for nothing. Nothing was decided and nothing was sent."},
	CodeReviewRefused:      {false, true, "The decision does not fit the action as it is now. Nothing was changed and nothing was sent."},
	CodeUndoRefused:        {false, false, "The action cannot be undone by its contract, or not now. Nothing was sent."},
	CodeResultExpired:      {false, true, "The action completed, and its result is no longer kept. This key is used up; something new needs a key of its own."},
	CodeContentErased:      {false, false, "The content was kept for as long as its contract says, and is erased. Nothing was shown."},
	CodeOverloaded:         {true, false, "The gateway takes no more work right now. Nothing was done."},
	CodeJournalUnavailable: {true, false, "The journal cannot be written, so nothing is sent."},
	CodeInternal:           {false, true, "deed has a fault of its own. Look at its log."},
}

// Error is an answer that made no new action: a code for machines and a sentence for people. The sentence never holds an
// argument's value, a secret or a path of this machine.
type Error struct {
	Code    Code
	Message string
	Reason  string // what is in the way, in one word, if that has a name
	Action  ID     // the action that it is about, if any
	Err     error

	Journalled bool // the refusal stands in the journal already
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap gives the cause, for the log.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error. A wrapped cause is kept for the log and is no part of the message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Because adds the cause that the log should show.
func (e *Error) Because(err error) *Error { e.Err = err; return e }

// About names the action that the error is about.
func (e *Error) About(id ID) *Error { e.Action = id; return e }
