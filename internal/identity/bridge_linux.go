package identity

import (
	"os"
	"sync"

	"deed.dev/deed/internal/action"
)

// bridge is what evidence says stood between an agent and deed.
const bridge = "deed mcp"

// maxBridges bounds how many of our own processes in a row are looked through.
const maxBridges = 3

// throughBridge replaces a process that runs deed itself by its parent, since that is the agent: the bridge speaks for
// whoever started it. If any link of the chain does not hold, the process stays what it is.
func (s sighting) throughBridge(p *process, running file) sighting {
	if !isDeed(running, s.exe) {
		return s
	}
	child, strength := p, s.strength
	for range maxBridges {
		parent, exe, running, ok := s.parentOf(child)
		if !ok {
			return s
		}
		defer parent.close()
		if parent.pidfd < 0 {
			strength = action.StrengthPeerPID
		}
		if !isDeed(running, exe) {
			return sighting{
				uid: s.uid, boot: s.boot, pid: parent.pid, start: parent.start, exe: exe, strength: strength, via: bridge,
			}
		}
		child = parent
	}
	return s
}

// parentOf opens the parent of a process and reads it. If the child has the same parent afterwards, that one lived the
// whole time. Process 1 takes in the children of the dead, and so may others (a service manager, a subreaper): they stand in
// another session than the children they took in. A parent of another session is not taken for an agent.
func (s sighting) parentOf(child *process) (parent *process, exe executable, running file, ok bool) {
	if child.parent <= 1 {
		return nil, executable{}, file{}, false
	}
	parent, err := openProcess(child.parent)
	if err != nil {
		return nil, executable{}, file{}, false
	}
	exe, running, err = parent.executable()
	if err != nil || parent.session != child.session || parent.start > child.start || !parent.runsAs(s.uid) || !parent.lives() || !child.keptParent() {
		parent.close()
		return nil, executable{}, file{}, false
	}
	return parent, exe, running, true
}

// own is the program that this process runs.
var own = sync.OnceValue(func() (me struct {
	exe     executable
	running file
	known   bool
}) {
	p := &process{pid: os.Getpid(), pidfd: -1}
	var err error
	me.exe, me.running, err = p.executable()
	me.known = err == nil
	return me
})

// isDeed reports whether a file is our own program: the same file, a copy of it, or the version that an update has put
// at our path since we started.
func isDeed(running file, exe executable) bool {
	me := own()
	if !me.known {
		return false
	}
	if running.same(me.running) || (exe.digest != "" && exe.digest == me.exe.digest) {
		return true
	}
	return exe.named && me.exe.named && exe.path == me.exe.path
}
