package operator_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"deed.dev/deed/internal/operator"
)

const nobody = 65534

// Another user is turned away: by the socket's mode, and by the door itself where the mode was widened.
func TestAnotherUserIsTurnedAway(t *testing.T) {
	t.Parallel()
	if got := operator.MayEnter("65534"); got || !operator.MayEnter("0") {
		t.Errorf("user %d may enter: %t; root: %t", nobody, got, operator.MayEnter("0"))
	}
	if os.Geteuid() != 0 {
		return // only root can become somebody else, and the rule was asked above
	}
	s := newStage(t)
	id := s.lostMail("a")
	s.must(os.Chmod(filepath.Dir(s.socket), 0o755))
	if _, err := connectAs(nobody, s.socket); !errors.Is(err, unix.EACCES) {
		t.Errorf("the socket can be opened by others: %v", err)
	}
	s.must(os.Chmod(s.socket, 0o666))
	conn, err := connectAs(nobody, s.socket)
	s.must(err)
	dial := func(_, _ string) (net.Conn, error) { return conn, nil }
	client := &http.Client{Transport: &http.Transport{Dial: dial}} //nolint:staticcheck // one connection that exists already
	for _, path := range []string{"/v1/status", "/v1/review", "/v1/actions/" + string(id), "/metrics", "/"} {
		res, err := client.Get("http://deed" + path)
		s.must(err)
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("GET %s is answered %s", path, res.Status)
		}
		_, _ = io.Copy(io.Discard, res.Body) // or the connection is not used again
		_ = res.Body.Close()
	}
	res, err := client.Post("http://deed/v1/actions/"+string(id)+"/review", "application/json",
		strings.NewReader(`{"decision":"redo","why":"x","seen":"`+s.seen(id)+`"}`))
	s.must(err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusForbidden || s.Requests() != 1 {
		t.Errorf("a decision of another user is answered %s, and the target saw %d requests", res.Status, s.Requests())
	}
}

// connectAs connects from a thread that runs as another user. The thread ends with it.
func connectAs(uid int, path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			done <- result{err: errno}
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			done <- result{err: err}
			return
		}
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			done <- result{err: err}
			return
		}
		conn, err := net.FileConn(f)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}
