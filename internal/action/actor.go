package action

import "strings"

// Strength is how well the evidence behind an actor was checked, weakest first. It is kept on every record, so that a
// reader of the journal knows what an identity was worth.
type Strength string

// Strengths of evidence.
const (
	StrengthNone        Strength = ""             // nobody proved anything; such a caller is refused
	StrengthSameProcess Strength = "same_process" // the caller started deed itself (stdio)
	StrengthPeerUID     Strength = "peer_uid"     // the kernel named the user, but not which process
	StrengthPeerPID     Strength = "peer_pid"     // the kernel named the process, its start time checked twice
	StrengthPeerPIDFD   Strength = "peer_pidfd"   // the kernel held the process while it was read
	StrengthToken       Strength = "bearer_token" // the caller holds a secret that an operator gave out
)

// Actor is the verified principal behind an agent, and how it was verified. What the caller says of itself is never part
// of it.
type Actor struct {
	Kind     string // "process", "token", "signed-process", "mtls", "oidc"
	Identity string // "uid=1000 exe=/usr/bin/agent", or the name of a token
	Strength Strength
	Shared   bool // strangers may hold the same proof: a keyless repeat is held, never answered with another call's result

	Evidence Evidence
}

// Evidence stands beside the actor. It is never an input to matching: an update changes an executable's digest, and a
// new process has another pid.
type Evidence struct {
	PID        int
	StartTime  uint64 // of the process, in clock ticks since boot, as the kernel counts
	BootID     string
	Executable string // path
	Digest     string // SHA-256 of the executable, lower-case hex
	Via        string // what stood between: "deed mcp" when the bridge was looked through to its parent
}

// String is the form that records show: "process:uid=1000 exe=/usr/bin/agent".
func (a Actor) String() string { return a.Kind + ":" + a.Identity }

// Same reports whether two actors are one principal. How strongly each was proved does not matter here.
func (a Actor) Same(b Actor) bool { return a.Kind == b.Kind && a.Identity == b.Identity }

// Verified reports whether anything at all was proved about the actor.
func (a Actor) Verified() bool {
	return a.Kind != "" && strings.TrimSpace(a.Identity) != "" && a.Strength != StrengthNone
}
