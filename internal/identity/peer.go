package identity

import (
	"errors"
	"fmt"
	"strconv"
	"unicode"

	"deed.dev/deed/internal/action"
)

// ErrGone means that the process at the other end ended before it could be looked at, so that nobody can be named.
var ErrGone = errors.New("the calling process has ended")

// Peer is the process behind a connection.
type Peer struct {
	uid      string
	actor    action.Actor
	instance string
}

// Actor is the principal, with the strength of what was proved about it.
func (p *Peer) Actor() action.Actor { return p.actor }

// UID is the user that the process runs as, as the system writes it: a number, or a SID on Windows.
func (p *Peer) UID() string { return p.uid }

// Instance names this one life of the process: boot, pid and start time. A later process with the same pid has another
// one. It is the run of a caller that names no run itself; "" means that the process is not known, only its user.
func (p *Peer) Instance() string { return p.instance }

// sighting is what was found out about a process. Fields that could not be read are empty.
type sighting struct {
	uid      string
	pid      int
	start    uint64
	boot     string
	exe      executable
	strength action.Strength
	via      string
}

// executable is the program that a process runs.
type executable struct {
	path   string
	digest string
	// named means that the path leads to this file for us too. A process can make any path lead to its own program for
	// itself, in a mount namespace of its own; such a path is a claim.
	named bool
}

// peer turns a sighting into an actor that claims no more than what was found.
func (s sighting) peer() *Peer {
	identity := "uid=" + s.uid
	switch {
	case s.exe.path != "" && s.exe.named:
		identity += " exe=" + printable(s.exe.path)
	case s.exe.path != "" && s.exe.digest != "":
		identity += " exe=" + printable(s.exe.path) + " sha256=" + s.exe.digest
	case s.strength != action.StrengthSameProcess:
		s.strength = action.StrengthPeerUID
	}
	p := &Peer{uid: s.uid}
	if s.boot != "" && s.pid > 0 && s.start > 0 {
		p.instance = fmt.Sprintf("boot=%s pid=%d start=%d", s.boot, s.pid, s.start)
	} else {
		s.pid, s.start = 0, 0 // a number alone is soon somebody else's
	}
	p.actor = action.Actor{
		Kind: "process", Identity: identity, Strength: s.strength,
		Shared: p.instance == "",
		Evidence: action.Evidence{
			PID: s.pid, StartTime: s.start, BootID: s.boot,
			Executable: printable(s.exe.path), Digest: s.exe.digest, Via: s.via,
		},
	}
	return p
}

// printable keeps a path readable in records. A path begins with a slash and a quoted one with a quote, so two paths
// never read the same.
func printable(path string) string {
	for _, r := range path {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return strconv.QuoteToASCII(path)
		}
	}
	return path
}
