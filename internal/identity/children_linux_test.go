package identity

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is also the program of its child processes: a role in the environment says which one, and the roles
// of a chain stand behind each other.
const (
	rolesVar   = "IDENTITY_TEST_ROLES"
	programVar = "IDENTITY_TEST_PROGRAMS"
	socketVar  = "IDENTITY_TEST_SOCKET"
)

func TestMain(m *testing.M) {
	roles := os.Getenv(rolesVar)
	if roles == "" {
		os.Exit(m.Run())
	}
	role, rest, _ := strings.Cut(roles, " ")
	os.Setenv(rolesVar, rest)
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// play runs one role. Those that live until they are told otherwise read their standard input to its end.
func play(role string) error {
	switch role {
	case "dial": // is a client
		if _, err := dial(); err != nil {
			return err
		}
		return untilTold()
	case "liar": // is a client that says it is another one, in every way it can
		if err := os.WriteFile("/proc/self/comm", []byte("trusted"), 0); err != nil {
			return err
		}
		conn, err := dial()
		if err != nil {
			return err
		}
		fmt.Fprintln(conn, `{"clientInfo":{"name":"trusted","version":"1"},"_meta":{"dev.deed/actor":"process:uid=0 exe=/usr/bin/trusted"}}`)
		return untilTold()
	case "start": // starts the next role and lives as long as it does
		return next(nil).Run()
	case "start-as-nobody": // the same, as another user
		cmd := next(nil)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return cmd.Run()
	case "leave": // starts the next role and ends
		return next(nil).Start()
	case "handover": // connects, gives the connection to the next role and ends
		conn, err := dial()
		if err != nil {
			return err
		}
		file, err := conn.File()
		if err != nil {
			return err
		}
		return next(file).Start()
	case "hold": // lives
		return untilTold()
	case "disguise": // shows its own program under the name of the next role's, in mounts of its own, and becomes that
		program, rest := programs()
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Mount("/proc/self/exe", program, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		os.Setenv(programVar, rest)
		return unix.Exec(program, []string{program}, os.Environ())
	case "parent": // says who started it
		p, err := ParentActor()
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(said{p.Actor(), p.Instance()})
	default:
		return fmt.Errorf("no such role")
	}
}

func dial() (*net.UnixConn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: os.Getenv(socketVar), Net: "unix"})
}

func untilTold() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func programs() (first, rest string) {
	first, rest, _ = strings.Cut(os.Getenv(programVar), " ")
	return first, rest
}

// next is the command of the next role in the chain.
func next(file *os.File) *exec.Cmd {
	program, rest := programs()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), programVar+"="+rest)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	return cmd
}

// stage is a real Unix socket and the processes that come to it.
type stage struct {
	t        *testing.T
	listener *net.UnixListener
	dir      string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "identity") // short, whatever the test is called
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &stage{t, l, dir}
}

// program puts a program of its own on the stage: the test binary with a different end.
func (s *stage) program(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(deedItself(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, append(text, name...), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func deedItself(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// child is a process of the stage. Closing tell is its order to end.
type child struct {
	cmd  *exec.Cmd
	tell io.Closer
	out  *bufio.Reader
}

// run starts the chain of programs in the roles, the first as our child, each next one as the child of the one before.
func (s *stage) run(roles string, chain ...string) *child {
	s.t.Helper()
	cmd := exec.Command(chain[0])
	return s.start(cmd, roles, chain[1:])
}

func (s *stage) start(cmd *exec.Cmd, roles string, rest []string) *child {
	s.t.Helper()
	cmd.Env = append(os.Environ(), rolesVar+"="+roles, programVar+"="+strings.Join(rest, " "), socketVar+"="+filepath.Join(s.dir, "s"),
		"GORACE=atexit_sleep_ms=0") // else each child of a race test takes a second to end
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	c := &child{cmd, in, bufio.NewReader(out)}
	s.t.Cleanup(func() { c.tell.Close(); _, _ = c.cmd.Process.Wait() })
	return c
}

// ended waits until the child itself has ended; its own children may go on.
func (c *child) ended(t *testing.T) {
	t.Helper()
	if _, err := c.cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) accept() *net.UnixConn {
	s.t.Helper()
	if err := s.listener.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	conn, err := s.listener.AcceptUnix()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// peer names whoever connects next.
func (s *stage) peer() *Peer {
	s.t.Helper()
	p, err := PeerOf(s.accept())
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}
