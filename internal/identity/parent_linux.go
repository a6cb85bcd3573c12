package identity

import (
	"os"
	"strconv"

	"deed.dev/deed/internal/action"
)

// ParentActor names the process that started this one: the agent, when deed runs inside deed mcp. Call it at the start,
// while that process surely lives. When nothing can be proved about it, the actor is our own user, and the strength says
// that no more is known than who could have started us.
func ParentActor() (*Peer, error) {
	self, err := openProcess(os.Getpid())
	if err != nil {
		return nil, err
	}
	defer self.close()
	s := sighting{
		uid: strconv.Itoa(os.Getuid()), boot: bootID(), pid: self.pid, start: self.start, strength: action.StrengthPeerPIDFD,
	}
	exe, running, err := self.executable()
	if err == nil {
		s.exe = exe
		if parent := s.throughBridge(self, running); parent.via != "" {
			if parent.pid == self.parent {
				parent.via = "" // nothing stood between
			}
			return parent.peer(), nil
		}
	}
	s.exe, s.strength = executable{}, action.StrengthSameProcess
	return s.peer(), nil
}
