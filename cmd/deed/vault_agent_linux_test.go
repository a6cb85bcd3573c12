package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/vault"
	"deed.dev/deed/internal/vault/agefile"
	"deed.dev/deed/lab/provider"
)

// VA-01: the process that the agent talks through holds the credential neither in its environment, nor in its memory, nor
// in anything that it reads or writes, also when the target sends the credential back. The gateway's process does: that
// the search finds it there shows that it would be found.
func TestTheAgentsProcessNeverHoldsTheCredential(t *testing.T) {
	t.Parallel()
	const passphrase = "a passphrase for this test"
	canary := fmt.Sprintf("canary-%d-of-the-vault", time.Now().UnixNano()) // not in the memory of this binary
	d := newDaemon(t, crashTools)
	list := strings.Replace(string(must(os.ReadFile(filepath.Join(d.dir, "config", "credentials.yaml")))), "env: DEED_DEMO_SECRET", "vault: true", 1)
	d.must(os.WriteFile(filepath.Join(d.dir, "config", "credentials.yaml"), []byte(list), 0o600))
	d.must(os.WriteFile(filepath.Join(d.dir, "passphrase"), []byte(passphrase+"\n"), 0o600))
	key := must(vault.WithPassphrase([]byte(passphrase)))
	file := filepath.Join(d.data(), "vault.age")
	d.must(vault.Create(file, key, agefile.LeastWork, nil))
	loaded := must(vault.Load(filepath.Join(d.dir, "config", "credentials.yaml")))
	credential, _ := loaded.Find("provider")
	d.must(vault.Edit(file, key, func(e *vault.Editor) error { return e.Set(credential, []byte(canary), time.Now()) }))
	d.start(built.deed, "DEED_VAULT_PASSPHRASE_FILE="+filepath.Join(d.dir, "passphrase"))
	d.must(d.provider.Set(provider.Switches{Faults: []provider.Fault{{Kind: provider.EchoHeaders}}}))

	agent := exec.Command(built.deed, "mcp", "--config", filepath.Join(d.dir, "config"), "--data", d.data(), "--socket", filepath.Join(filepath.Dir(d.operator), "deed.sock"))
	agent.Env = []string{"HOME=" + d.dir, "PATH=" + os.Getenv("PATH")}
	in, out := must(agent.StdinPipe()), must(agent.StdoutPipe())
	d.must(agent.Start())
	defer func() { _ = agent.Process.Kill(); _ = agent.Wait() }()
	var traffic bytes.Buffer
	answers := bufio.NewReader(io.TeeReader(out, &traffic))
	say := func(line string, answered bool) {
		t.Helper()
		_, err := io.WriteString(in, line+"\n")
		d.must(err)
		if answered {
			_ = must(answers.ReadString('\n'))
		}
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}`, true)
	say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, false)
	say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, true)
	say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"charge","arguments":{"amount":5,"currency":"usd","customer":"cus_1"}}}`, true)
	say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"charge","arguments":{"amount":5,"currency":"usd","customer":"cus_1","credential":"provider"}}}`, true)

	seen := d.provider.Requests()
	if len(seen) == 0 || seen[0].Values("Authorization")[0] != "Bearer "+canary {
		t.Fatalf("the credential did not reach the target: %v", seen)
	}
	if strings.Contains(traffic.String(), canary) || !strings.Contains(traffic.String(), `"id":3`) {
		t.Errorf("the agent was told %s", traffic.String())
	}
	if env := must(os.ReadFile(fmt.Sprintf("/proc/%d/environ", agent.Process.Pid))); bytes.Contains(env, []byte(canary)) {
		t.Error("the agent's environment holds the credential")
	}
	if memoryHolds(t, agent.Process.Pid, canary) {
		t.Error("the agent's memory holds the credential")
	}
	if !memoryHolds(t, d.cmd.Process.Pid, canary) {
		t.Error("not even the gateway's memory holds the credential, so the search shows nothing")
	}
	for _, path := range []string{"/v1/status", "/v1/review", "/v1/vault", "/metrics", "/v1/actions/" + string(d.actions()[0].ID)} { // VA-12
		answer := d.ask(path)
		if strings.Contains(answer, canary) || answer == "" {
			t.Errorf("the operator's door says at %s: %s", path, answer)
		}
	}
	if !strings.Contains(d.ask("/v1/vault"), `"ref":"provider"`) {
		t.Error("the vault is not listed, so the search shows nothing")
	}
	d.stop()
	if strings.Contains(d.stderr.String(), canary) || strings.Contains(d.stderr.String(), passphrase) {
		t.Error("the log holds a secret")
	}
}

// ask reads at the operator's door.
func (d *daemon) ask(path string) string {
	d.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.operator)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	res, err := client.Get("http://deed" + path)
	d.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	d.must(err)
	return string(text)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// memoryHolds searches what a process may read of its own memory.
func memoryHolds(t *testing.T, pid int, text string) bool {
	t.Helper()
	maps := must(os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)))
	memory := must(os.Open(fmt.Sprintf("/proc/%d/mem", pid)))
	defer memory.Close()
	read := int64(0)
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || rights[0] != 'r' || strings.Contains(line, "[v") {
			continue
		}
		const step, overlap = 1 << 20, 1 << 10
		for at := from; at < to; at += step - overlap {
			part := make([]byte, min(step, to-at))
			n, err := memory.ReadAt(part, at)
			read += int64(n)
			if bytes.Contains(part[:n], []byte(text)) {
				return true
			}
			if err != nil || at+step >= to {
				break
			}
		}
	}
	if read < 1<<20 {
		t.Fatalf("only %d bytes of process %d could be read", read, pid)
	}
	return false
}
