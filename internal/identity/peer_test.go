package identity

import (
	"testing"

	"deed.dev/deed/internal/action"
)

// The strength never says more than the identity shows.
func TestSightingClaimsNoMoreThanWasSeen(t *testing.T) {
	whole := sighting{
		uid: "1000", pid: 42, start: 7, boot: "b", strength: action.StrengthPeerPIDFD,
		exe: executable{path: "/usr/bin/agent", digest: "d", named: true},
	}
	unnamed, unread, unknown, unborn, stdio := whole, whole, whole, whole, whole
	unnamed.exe.named = false
	unread.exe = executable{path: "/usr/bin/agent"}
	unknown.pid, unknown.exe = 0, executable{}
	unborn.start, unborn.exe = 0, executable{}
	stdio.exe, stdio.strength = executable{}, action.StrengthSameProcess
	for _, c := range []struct {
		name     string
		in       sighting
		identity string
		strength action.Strength
		shared   bool
	}{
		{"whole", whole, "uid=1000 exe=/usr/bin/agent", action.StrengthPeerPIDFD, false},
		{"a name that holds only for the process", unnamed, "uid=1000 exe=/usr/bin/agent sha256=d", action.StrengthPeerPIDFD, false},
		{"such a name without a digest", unread, "uid=1000", action.StrengthPeerUID, false},
		{"the user only", unknown, "uid=1000", action.StrengthPeerUID, true},
		{"a process without a start time", unborn, "uid=1000", action.StrengthPeerUID, true},
		{"stdio", stdio, "uid=1000", action.StrengthSameProcess, false},
	} {
		got := c.in.peer().Actor()
		if got.Shared != (got.Evidence.PID == 0) {
			t.Errorf("%s: shared is %v with process %d in evidence", c.name, got.Shared, got.Evidence.PID)
		}
		if got.Identity != c.identity || got.Strength != c.strength || got.Shared != c.shared {
			t.Errorf("%s: %q, %q, shared %v, want %q, %q, %v", c.name, got.Identity, got.Strength, got.Shared, c.identity, c.strength, c.shared)
		}
	}
}

func TestPathsInIdentities(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/agent":      "/usr/bin/agent",
		"/opt/my agent/a exe": "/opt/my agent/a exe",
		"/opt/ägent":          "/opt/ägent",
		"/tmp/a\nb":           `"/tmp/a\nb"`,
		"/tmp/\xff":           `"/tmp/\xff"`,
		"/tmp/\ufffd":         `"/tmp/\ufffd"`,
		"/tmp/\u202eexe":      `"/tmp/\u202eexe"`,
	} {
		if got := printable(path); got != want {
			t.Errorf("printable(%q) = %s, want %s", path, got, want)
		}
	}
}
