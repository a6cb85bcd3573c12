package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// VA-12: what is typed at the prompt for a passphrase is not shown.
func TestAPassphraseThatIsTypedIsNotShown(t *testing.T) {
	t.Parallel()
	master := must(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave := must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", must(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))), os.O_RDWR|unix.O_NOCTTY, 0))
	dir := t.TempDir()
	cmd := exec.Command(built.deed, "vault", "init", "--work-factor", "10", "--config", filepath.Join(dir, "config"), "--data", filepath.Join(dir, "state"))
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	said := &terminalWords{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(master) // ends with an error when nobody has the other end any more
		shown <- string(text)
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); _ = slave.Close() }()
	echoes := func() bool { return must(unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)).Lflag&unix.ECHO != 0 }
	for deadline := time.Now().Add(10 * time.Second); echoes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the terminal still shows what is typed")
		}
	}
	_ = must(master.WriteString("correct horse battery\n")) // the prompt comes twice, with nothing shown between
	for n := 0; n < 5000 && !strings.Contains(said.String(), "Once more"); n++ {
		time.Sleep(time.Millisecond)
	}
	for deadline := time.Now().Add(10 * time.Second); echoes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the terminal shows what is typed at the second prompt")
		}
	}
	_ = must(master.WriteString("correct horse battery\n"))
	if err := <-ended; err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if text := <-shown; strings.Contains(text, "horse") {
		t.Errorf("the terminal shows %q", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "state", "vault.age")); err != nil {
		t.Error(err)
	}
}

// terminalWords is what a program says, for those who read it meanwhile.
type terminalWords struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *terminalWords) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *terminalWords) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
