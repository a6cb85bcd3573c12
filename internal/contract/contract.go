package contract

import (
	"time"

	"cel.dev/cel-go/cel"
	"deed.dev/deed/internal/action"
)

// Contract is one tool, checked and ready. It does not change and may be used by several goroutines at once.
type Contract struct {
	Tool        string
	Title       string
	Description string
	File        string // where it was read from
	line        int    // of its name in the file

	Digest string // "sha256:…" of Source: names this version of the contract
	Source []byte // canonical JSON of the document. Parse reads it back to an equal contract

	Class      action.Class
	HasEffects bool
	Evidence   string // why the class is true

	Channel       string // "http"
	Method        string
	Host          action.Target // fixed by the contract: no argument decides who receives the request
	Template      string        // the path's shape: /v1/releases/{name}
	Credential    string        // reference; "" for none
	ResponseLimit int64         // bytes of an answer that are kept

	MaxAttempts int
	Timeout     time.Duration // of one attempt
	AttachFor   time.Duration // how long after a final state an equal call still attaches
	KeepResult  time.Duration
	Key         Key
	KeyLife     time.Duration // how long after the first send a resend with the same key may start; 0 where it never may
	ReviewAfter time.Duration // how long deed looks for evidence of a lost outcome before a person is asked
	Scope       Scope
	KeyOnly     bool // equal calls side by side are normal work
	EachUse     bool // a person approves each action
	Approval    Approval

	Resource   string   // as written, with its ${…}
	Impact     string   // as written, with its ${…}
	Volatile   []string // JSON pointers of arguments without meaning for the effect
	Normalized []string // names of arguments that have a normalizer
	Redact     []string // JSON pointers of arguments that are not shown
	Lookup     *Lookup  // how the target can be asked; nil where it cannot
	Poll       *Poll    // how a target that finishes later is asked; nil where it answers at once
	Undo       *Undo    // what undoes it; nil where nothing does

	args     *input
	address  *address
	headers  []field
	body     *node
	media    string
	form     bool
	metadata metadataPart
	norms    []normalizer
	secrets  []string // names of secret arguments
	resource *text
	impact   *text
	rules    []rule
}

// Approval says how people approve.
type Approval struct {
	Approvers    int           // who have to approve
	Expires      time.Duration // how long a request, and what was decided about it, counts
	NotRequester bool          // nobody approves what an agent of theirs has asked for
}

// Scope says where an equal call counts as a repeat.
type Scope string

// Scopes of matching.
const (
	ScopeRun      Scope = "run"
	ScopeResource Scope = "resource"
	ScopeActor    Scope = "actor"
)

// Key says where the target takes its idempotency key and what it does when the key comes again.
type Key struct {
	Header  string // header field, or ""
	JSON    string // JSON pointer into the body, or ""
	Form    string // form field, or ""
	Repeat  Repeat
	KeptFor time.Duration // by the target
	Margin  time.Duration // before its end no resend starts
}

// Given reports whether the target takes a key at all.
func (k Key) Given() bool { return k.Header != "" || k.JSON != "" || k.Form != "" }

// Place names where the key stands in the request.
func (k Key) Place() string {
	switch {
	case k.Header != "":
		return "header " + k.Header
	case k.JSON != "":
		return "body member " + k.JSON
	case k.Form != "":
		return "form field " + k.Form
	default:
		return "nowhere"
	}
}

// Repeat is what a target does when a key comes again.
type Repeat string

// Only the first two let a resend prove anything.
const (
	ReturnsOriginalRefusesChanged Repeat = "returns_original_and_refuses_changed"
	ReturnsOriginalOnly           Repeat = "returns_original_only"
	RepeatUnspecified             Repeat = "unspecified"
	RepeatIgnored                 Repeat = "ignored"
)

// normalizer gives an argument its one spelling.
type normalizer struct {
	name   string
	source string
	text   *text
}

// rule is one of done_when, no_effect_when, retry_when and poll.accepted_when.
type rule struct {
	path    string
	name    string
	expr    *expression
	verdict action.Verdict
}

// optional reports whether the type is an optional or null, so that a value may be absent.
func optional(t *cel.Type) bool {
	return t.IsExactType(cel.NullType) || t.Kind() == cel.OpaqueKind && t.TypeName() == "optional_type"
}
