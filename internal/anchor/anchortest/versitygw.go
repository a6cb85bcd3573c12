package anchortest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Versitygw runs an S3 server that nobody here wrote, over a folder of the test, and returns its URL.
func Versitygw(t testing.TB, access, secret string) (url string) {
	t.Helper()
	program := Program(t, "versitygw")
	dir := t.TempDir()
	for _, name := range []string{"root", "versions", "sidecar"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	address := FreeAddress(t)
	// The sidecar holds what would be extended attributes, which not every file system has.
	cmd := exec.Command(program, "--quiet", "--port", address, "posix",
		"--versioning-dir", filepath.Join(dir, "versions"), "--sidecar", filepath.Join(dir, "sidecar"), filepath.Join(dir, "root"))
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+access, "ROOT_SECRET_KEY="+secret)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("versitygw: %s", text)
		}
	})
	AwaitAddress(t, address)
	return "http://" + address
}
