package anchortest

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"deed.dev/deed/journal"
)

// Litewitness runs the witness of torchwood, which watches these logs, and returns its URL and its key. Its own key is
// handed to it by an agent of SSH keys in this process.
func Litewitness(t testing.TB, name string, logs ...*Log) (url string, key journal.Key) {
	t.Helper()
	server, control := Program(t, "litewitness"), Program(t, "witnessctl")
	dir, err := os.MkdirTemp("", "lw-") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	db, socket := filepath.Join(dir, "db"), filepath.Join(dir, "agent")
	for _, l := range logs {
		for _, args := range [][]string{
			{"add-log", "-db", db, "-origin", l.Signer.Origin()},
			{"add-key", "-db", db, "-origin", l.Signer.Origin(), "-key", l.Signer.Key().String()},
		} {
			if out, err := exec.CommandContext(t.Context(), control, args...).CombinedOutput(); err != nil {
				t.Fatalf("witnessctl %v: %v\n%s", args, err, out)
			}
		}
	}
	address := FreeAddress(t)
	cmd := exec.Command(server, "-db", db, "-name", name, "-listen", address,
		"-ssh-agent", socket, "-key", serveAgent(t, socket))
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said := regexp.MustCompile(`vkey="?([^ "\n]+)`)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := said.FindStringSubmatch(lines.Text()); m != nil {
			if key, err = journal.ParseKey(m[1]); err != nil {
				t.Fatalf("the key of litewitness: %v", err)
			}
			go func() { // it would wait for a reader
				for lines.Scan() {
				}
			}()
			AwaitAddress(t, address)
			return "http://" + address, key
		}
	}
	t.Fatal("litewitness said no key")
	return "", key
}

// serveAgent serves an agent of SSH keys with one new key, and returns its fingerprint.
func serveAgent(t testing.TB, socket string) (fingerprint string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, conn) }()
		}
	}()
	p, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return ssh.FingerprintSHA256(p)
}

// FreeAddress is an address of this machine that nobody listens on.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// AwaitAddress waits until somebody answers there.
func AwaitAddress(t testing.TB, address string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("nobody answers on %s", address)
}
