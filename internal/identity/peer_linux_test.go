package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"deed.dev/deed/internal/action"
	"golang.org/x/sys/unix"
)

// said is what a child reports about its parent.
type said struct {
	Actor    action.Actor
	Instance string
}

// runs is the identity of a process of ours that runs a program.
func runs(program string) string { return fmt.Sprintf("uid=%d exe=%s", os.Getuid(), program) }

func sum(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

// strongest is what this kernel can prove.
func strongest(t *testing.T) action.Strength {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFD(fds[0])
	defer closeFD(fds[1])
	fd, err := peerPIDFD(fds[0])
	if errors.Is(err, unix.ENOPROTOOPT) {
		return action.StrengthPeerPID
	}
	if err != nil {
		t.Fatal(err)
	}
	closeFD(fd)
	return action.StrengthPeerPIDFD
}

// VA-07: the actor is what the kernel says of the process at the other end, with the digest of its program beside it.
func TestTwoProgramsAreTwoActors(t *testing.T) {
	s := newStage(t)
	a, b := s.program("a"), s.program("b")
	for _, program := range []string{a, b} {
		c := s.run("dial", program)
		got := s.peer().Actor()
		want := action.Actor{
			Kind: "process", Identity: runs(program), Strength: strongest(t),
			Evidence: action.Evidence{
				PID: c.cmd.Process.Pid, StartTime: got.Evidence.StartTime, BootID: bootID(), Executable: program, Digest: sum(t, program),
			},
		}
		if got != want || got.Evidence.StartTime == 0 || !got.Verified() {
			t.Errorf("the actor is\n%+v, want\n%+v", got, want)
		}
	}
}

// VA-07: a process that calls itself something else, in its arguments, its name or its messages, stays who it is.
func TestWhatAClientSaysOfItselfIsNotBelieved(t *testing.T) {
	s := newStage(t)
	agent := s.program("agent")
	cmd := exec.Command(agent, "--name=trusted")
	cmd.Args[0] = "/usr/bin/trusted"
	s.start(cmd, "liar", nil)
	if got, want := s.peer().Actor().String(), "process:"+runs(agent); got != want {
		t.Errorf("the actor is %q, want %q", got, want)
	}
}

// Two processes of one program are one actor, with two lives. A pid that is used again starts another life.
func TestEachLifeIsItsOwnInstance(t *testing.T) {
	s := newStage(t)
	agent := s.program("agent")
	s.run("dial", agent)
	first := s.peer()
	s.run("dial", agent)
	second := s.peer()
	if !first.Actor().Same(second.Actor()) {
		t.Errorf("the actors are %v and %v, want one", first.Actor(), second.Actor())
	}
	if first.Instance() == second.Instance() || first.Instance() == "" {
		t.Errorf("the instances are %q and %q, want two", first.Instance(), second.Instance())
	}

	life := sighting{uid: "1000", pid: 42, start: 1000, boot: "b1", exe: executable{path: "/usr/bin/agent", named: true}}
	later, rebooted := life, life
	later.start, rebooted.boot = 1001, "b2"
	for _, other := range []sighting{later, rebooted} {
		if life.peer().Instance() == other.peer().Instance() {
			t.Errorf("%+v and %+v have the same instance", life, other)
		}
	}
}

// A connection goes with its maker. When that process has ended, whoever holds the connection now gets no name from it.
func TestHandedOverConnectionNamesNobody(t *testing.T) {
	s := newStage(t)
	agent, other := s.program("agent"), s.program("other")
	s.run("handover hold", agent, other).ended(t)
	if p, err := PeerOf(s.accept()); !errors.Is(err, ErrGone) {
		t.Errorf("PeerOf = %+v, error %v, want %v", p, err, ErrGone)
	}
}

// Without SO_PEERPIDFD the answer is the same, and the actor says that it is worth less.
func TestOldKernelIsSaidToProveLess(t *testing.T) {
	s := newStage(t)
	agent := s.program("agent")
	s.run("dial", agent)
	conn := s.accept()
	now, err := PeerOf(conn)
	if err != nil {
		t.Fatal(err)
	}
	old, err := peerOf(conn, func(int) (int, error) { return -1, unix.ENOPROTOOPT })
	if err != nil {
		t.Fatal(err)
	}
	if got := old.Actor(); got.Strength != action.StrengthPeerPID || !got.Same(now.Actor()) || old.Instance() != now.Instance() {
		t.Errorf("the actor is %+v in %q, want that of %+v in %q with strength peer_pid", got, old.Instance(), now.Actor(), now.Instance())
	}

	s.run("handover hold", agent, s.program("other")).ended(t)
	if p, err := peerOf(s.accept(), func(int) (int, error) { return -1, unix.ENOPROTOOPT }); !errors.Is(err, ErrGone) {
		t.Errorf("after its maker has ended: %+v, error %v, want %v", p, err, ErrGone)
	}
}

// An update takes the file away under a running agent. It stays the actor that it was, with the digest of what runs.
func TestReplacedProgramStaysTheActor(t *testing.T) {
	s := newStage(t)
	agent := s.program("agent")
	old := sum(t, agent)
	s.run("dial", agent)
	conn := s.accept()
	if err := os.Remove(agent); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		p, err := PeerOf(conn)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Actor()
		if got.Identity != runs(agent) || got.Evidence.Digest != old || got.Evidence.Executable != agent {
			t.Errorf("%s: the actor is %+v, want %s with digest %s", when, got, runs(agent), old)
		}
	}
	check("removed")
	if err := os.Rename(s.program("update"), agent); err != nil {
		t.Fatal(err)
	}
	check("replaced")
	s.run("dial", agent)
	if got := s.peer().Actor(); got.Identity != runs(agent) || got.Evidence.Digest == old {
		t.Errorf("the updated program is %+v, want the same actor with another digest", got)
	}
}

// What the kernel appends to a removed file's name may also be part of a name.
func TestNameThatEndsInDeleted(t *testing.T) {
	s := newStage(t)
	agent := s.program("agent" + deleted)
	s.run("dial", agent)
	if got := s.peer().Actor().Identity; got != runs(agent) {
		t.Errorf("the identity is %q, want %q", got, runs(agent))
	}
}

// A process can make any path lead to its own program, for itself. The path is then a claim, and the digest stands in
// the identity, so that it is another actor than the program at that path.
func TestMountsOfItsOwnLendNoName(t *testing.T) {
	s := newStage(t)
	agent, attacker := s.program("agent"), s.program("attacker")
	cmd := exec.Command(attacker)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = cmd.SysProcAttr
	if err := probe.Run(); err != nil {
		t.Skipf("this system lets nobody make a user namespace: %v", err)
	}
	want := runs(agent) + " sha256=" + sum(t, attacker)
	s.start(cmd, "disguise dial", []string{agent})
	conn := s.accept()
	for _, when := range []string{"while its file is there", "when its file is removed"} {
		p, err := PeerOf(conn)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Actor().Identity; got != want {
			t.Errorf("%s, the identity is %q, want %q", when, got, want)
		}
		_ = os.Remove(attacker)
	}
	s.run("dial", agent)
	if honest := s.peer().Actor(); honest.Identity != runs(agent) {
		t.Errorf("the program at the path is %q, want %q", honest.Identity, runs(agent))
	}
}

// Another user's process shows no executable. It is known by its user, and its process still tells its runs apart.
func TestOtherUsersProcessIsKnownByUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else to look from there")
	}
	s := newStage(t)
	s.run("dial", s.program("agent"))
	conn := s.accept()
	type answer struct {
		peer *Peer
		err  error
	}
	answers := make(chan answer)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine, and nobody else gets its user
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			answers <- answer{nil, errno}
			return
		}
		p, err := PeerOf(conn)
		answers <- answer{p, err}
	}()
	a := <-answers
	if a.err != nil {
		t.Fatal(a.err)
	}
	if got := a.peer.Actor(); got.Identity != "uid=0" || got.Strength != action.StrengthPeerUID || got.Shared || a.peer.Instance() == "" {
		t.Errorf("the actor is %+v in %q, want uid=0 known as peer_uid in a run of its own", got, a.peer.Instance())
	}
}

// The bridge is our own program, so the agent is whoever started it.
func TestBridgeIsLookedThrough(t *testing.T) {
	s := newStage(t)
	agent, deed := s.program("agent"), deedItself(t)
	copied := filepath.Join(s.dir, "deed-copy")
	if text, err := os.ReadFile(deed); err != nil || os.WriteFile(copied, text, 0o755) != nil {
		t.Fatal("copy our own program", err)
	}
	for _, c := range []struct {
		name, roles string
		chain       []string
	}{
		{"bridge", "start dial", []string{agent, deed}},
		{"bridge from another place", "start dial", []string{agent, copied}},
		{"bridge started by a bridge", "start start start dial", []string{agent, deed, copied, deed}},
	} {
		t.Run(c.name, func(t *testing.T) {
			started := s.run(c.roles, c.chain...)
			p := s.peer()
			got := p.Actor()
			if got.Identity != runs(agent) || got.Evidence.Via != "deed mcp" || got.Strength != strongest(t) ||
				got.Evidence.PID != started.cmd.Process.Pid || got.Evidence.Digest != sum(t, agent) {
				t.Errorf("the actor is %+v, want %s in process %d via deed mcp", got, runs(agent), started.cmd.Process.Pid)
			}
			s.run("start dial", agent, deed)
			if other := s.peer(); other.Instance() == p.Instance() || !other.Actor().Same(got) {
				t.Errorf("another agent of the program is %v in %q, want the same actor in another life", other.Actor(), other.Instance())
			}
		})
	}
}

// A parent that was read too late is somebody else: the child is asked again whose child it is.
func TestParentIsAskedForTwice(t *testing.T) {
	s := newStage(t)
	c := s.run("start dial", s.program("agent"), deedItself(t))
	child, err := openProcess(peerPID(t, s.accept()))
	if err != nil {
		t.Fatal(err)
	}
	defer child.close()
	us := sighting{uid: strconv.Itoa(os.Getuid())}
	parent, _, _, ok := us.parentOf(child)
	if !ok || parent.pid != c.cmd.Process.Pid {
		t.Fatalf("the parent is %+v, %v, want process %d", parent, ok, c.cmd.Process.Pid)
	}
	parent.close()
	child.parent = os.Getpid() // alive, older and of the same user, and not its parent
	if parent, _, _, ok := us.parentOf(child); ok {
		t.Errorf("process %d passes for the parent", parent.pid)
	}
}

// peerPID is the process that made a connection, whatever stands behind it.
func peerPID(t *testing.T, conn *net.UnixConn) int {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	if err != nil || pid == 0 {
		t.Fatal("no process behind the connection", err)
	}
	return pid
}

// Between two users stands sudo or a service manager, which is nobody's agent.
func TestBridgeOfAnotherUserIsNotLookedThrough(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of somebody else")
	}
	s := newStage(t)
	agent, copied := s.program("agent"), filepath.Join(s.dir, "deed-copy")
	text, err := os.ReadFile(deedItself(t))
	if err != nil || os.WriteFile(copied, text, 0o755) != nil || os.Chmod(s.dir, 0o755) != nil || os.Chmod(filepath.Join(s.dir, "s"), 0o777) != nil {
		t.Fatal("set the stage up for another user", err)
	}
	s.run("start-as-nobody dial", agent, copied)
	if got := s.peer().Actor(); got.Identity != "uid=65534 exe="+copied || got.Evidence.Via != "" {
		t.Errorf("the actor is %+v, want the bridge itself", got)
	}
}

// After an update the bridge is newer than the daemon, and still the bridge. Another program is not, whatever path it
// claims for itself.
func TestUpdatedBridgeIsStillTheBridge(t *testing.T) {
	here := deedItself(t)
	if !isDeed(file{ino: 1}, executable{path: here, digest: "another", named: true}) {
		t.Error("the program that stands at our path now is taken for a stranger")
	}
	for _, e := range []executable{{path: here, digest: "another"}, {path: here + "2", digest: "another", named: true}, {}} {
		if isDeed(file{ino: 1}, e) {
			t.Errorf("%+v is taken for deed", e)
		}
	}
}

func TestBridgesAreNotFollowedForEver(t *testing.T) {
	s := newStage(t)
	deed := deedItself(t)
	s.run("start start start dial", deed, deed, deed, deed)
	if got := s.peer().Actor(); got.Identity != runs(deed) || got.Evidence.Via != "" {
		t.Errorf("the actor is %+v, want the process itself", got)
	}
}

// When the agent has ended, its bridge does not speak for it any more, nor for whoever adopted the bridge as process 1.
func TestOrphanedBridgeDoesNotSpeakForTheDead(t *testing.T) {
	s := newStage(t)
	agent := s.program("agent")
	s.run("leave dial", agent, deedItself(t)).ended(t)
	got := s.peer().Actor()
	if got.Identity == runs(agent) || got.Evidence.PID == 1 {
		t.Errorf("the actor is %+v, want anybody but the agent that has ended and process 1", got)
	}
}

func TestParentOfStdioIsTheActor(t *testing.T) {
	s := newStage(t)
	agent := s.program("agent")
	c := s.run("start parent", agent, s.program("deed-over-stdio"))
	var got said
	if err := json.NewDecoder(c.out).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Actor.Identity != runs(agent) || got.Actor.Evidence.Via != "" || got.Actor.Evidence.PID != c.cmd.Process.Pid {
		t.Errorf("the actor is %+v, want %s in process %d", got.Actor, runs(agent), c.cmd.Process.Pid)
	}
	if got.Actor.Strength != action.StrengthPeerPIDFD || got.Instance == "" {
		t.Errorf("strength is %q in %q, want peer_pidfd in a run", got.Actor.Strength, got.Instance)
	}
}
