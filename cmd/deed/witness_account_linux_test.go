package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deed.dev/deed/internal/anchor/anchortest"
)

const (
	witnessAccount = 65534
	gatewayAccount = 65533
)

// AU-10: under another account the witness is out of the writer's reach. The gateway's account can neither read its key nor
// write its state, and a full history that is written anew, with valid hashes and the log's own signature, gets no signature
// of it.
func TestTheWriterCannotReachTheWitness(t *testing.T) {
	dir := t.TempDir()
	home, program := filepath.Join(dir, "w"), built.deed
	as := func(uid uint32, name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), name, args...)
		if os.Geteuid() == 0 { // else all of it runs under the one account that there is, and only the history is tried
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		}
		return cmd
	}
	if os.Geteuid() == 0 {
		program = filepath.Join(dir, "deed") // where every account may run it
		text, err := os.ReadFile(built.deed)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, text, 0o755); err != nil {
			t.Fatal(err)
		}
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(home, witnessAccount, witnessAccount); err != nil {
			t.Fatal(err)
		}
	}
	l := anchortest.New(t, 100)
	for _, args := range [][]string{{"init", "witness.example/w1"}, {"watch", l.Signer.Key().String()}} {
		if out, err := as(witnessAccount, program, append([]string{"witness", "--dir", home}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	address := anchortest.FreeAddress(t)
	serve := as(witnessAccount, program, "witness", "serve", "--dir", home, "--listen", address)
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
	anchortest.AwaitAddress(t, address)

	submit := func(log *anchortest.Log, old uint64) int {
		head := log.MustHead(t)
		body := fmt.Sprintf("old %d\n", old)
		proof, err := head.Proof(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range proof {
			body += base64.StdEncoding.EncodeToString(h[:]) + "\n"
		}
		resp, err := http.Post("http://"+address+"/add-checkpoint", "text/plain", io.MultiReader(strings.NewReader(body+"\n"), bytes.NewReader(head.Signed)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := submit(l, 0); got != 200 {
		t.Fatalf("the honest journal is answered %d", got)
	}
	if os.Geteuid() == 0 {
		for _, attempt := range []string{
			"cat " + home + "/witness.key", "echo x > " + home + "/state.json", "rm -rf " + home, "mv " + home + " " + home + "2", "ls " + home,
			"kill -9 " + fmt.Sprint(serve.Process.Pid), "cat /proc/" + fmt.Sprint(serve.Process.Pid) + "/mem",
		} {
			if out, err := as(gatewayAccount, "/bin/sh", "-c", attempt).CombinedOutput(); err == nil {
				t.Errorf("%s: the gateway's account could: %s", attempt, out)
			}
		}
	}
	for what, c := range map[string]struct {
		log  *anchortest.Log
		old  uint64
		want int
	}{
		"rewritten, as if it had never been asked": {l.Fork(0, 100), 0, 409},
		"rewritten, as if it continued":            {l.Fork(0, 150), 100, 422},
		"cut":                                      {l.Fork(50, 0), 0, 409},
	} {
		if got := submit(c.log, c.old); got != c.want {
			t.Errorf("%s: answered %d, want %d", what, got, c.want)
		}
	}
	l.Add(1)
	if got := submit(l, 100); got != 200 {
		t.Errorf("honest growth afterwards is answered %d", got)
	}
}
