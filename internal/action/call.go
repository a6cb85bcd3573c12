package action

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// A Call is one arriving request, as a front door decoded it: what is asked, by whom, and the protocol's own numbers. It
// is evidence. It never identifies an action.
type Call struct {
	ID        CallID
	Tool      string
	Arguments []byte // JSON as it arrived
	Actor     Actor
	Caller    CallerKey
	Protocol  Correlation
	Upstream  Upstream
	Undoes    ID // the completed action that this call compensates; no front door takes it from an agent's arguments
	At        time.Time
}

// CallerKey is the durable identity that an agent framework may give a call. It counts only inside the authenticated
// actor's own run.
type CallerKey struct {
	Run        string // the caller's name of its run; "" when it gave none
	Step       int64
	ToolCallID string // "" when it gave none: there is no key then
	Source     string // the _meta key it came from: "dev.deed/tool_call_id", "claudecode/toolUseId", …
}

// Given reports whether the caller supplied an identity for this call.
func (k CallerKey) Given() bool { return k.ToolCallID != "" }

// MaxKeyPart bounds each part of a caller's key, in bytes. A longer one is refused and never cut: two keys that differ
// in their last byte are two keys.
const MaxKeyPart = 1024

// Correlation is what the protocol says about the message. Two equal values mean nothing: every client numbers from 1.
type Correlation struct {
	Transport string // "mcp-http", "mcp-stdio", "mcp-socket", "cli", "operator"
	Era       string // MCP revision; "" elsewhere
	RequestID string // JSON-RPC id as it stood in the message; "" when unknown
	Session   string // MCP session; NoSession when the transport has none
	Client    string // what the client says its name is: shown, never believed
}

// NoSession is stored, and said, where a transport has no session.
const NoSession = "no session"

// Where upstream trace context came from, and so how far it is believed.
const (
	UpstreamNone       = "none"
	UpstreamVerified   = "authenticated_mcp_client"
	UpstreamUnverified = "unverified_input"
)

// Upstream is the trace context that a caller sent, as received. Only deed's own identifiers are used for its spans.
type Upstream struct {
	Source      string
	Traceparent string
	Tracestate  string
}

// Run is one agent process's life, or one task in it.
type Run struct {
	ID      RunID
	Key     string // digest of (actor, the caller's run or the process): finds it again
	Actor   Actor
	Started time.Time
}

// Intent is one durable decision of the agent to use a tool with arguments.
type Intent struct {
	ID         IntentID
	Run        RunID
	Tool       string
	Contract   string // digest of the contract version that it was resolved under
	IdemKey    string // SHA-256 of run:step:tool_call_id, lower-case hex
	Step       int64
	ToolCallID string
	KeySource  string // who gave the tool-call id: the caller's _meta key, or "deed"
	Arguments  Commitment
	At         time.Time
}

// Commitment is a salted digest of a payload that is kept in the protected store. The journal holds it, and gives
// nothing to guess at.
type Commitment string

// CommitmentTo is the commitment to a content under a salt. Whoever has both can check what the journal holds.
func CommitmentTo(salt, content []byte) Commitment {
	h := sha256.New()
	h.Write([]byte("deed-commitment/1\x00"))
	h.Write(salt)
	h.Write(content)
	return Commitment("sha256-salted:" + hex.EncodeToString(h.Sum(nil)))
}
