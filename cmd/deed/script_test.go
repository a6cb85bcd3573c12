package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"deed.dev/deed/lab/provider"
)

// Stories and attacks, told with the real program. Each script opens with what is promised or tried.
//
// A script finds a configuration in $CONFIG with the tools of the demo, data in $DATA, and a provider that it can
// misguide with `break` and whose ledger `effects` and `requests` count.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), RequireExplicitExec: true, RequireUniqueNames: true, Setup: scriptStage,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"break": scriptBreak, "effects": scriptEffects, "requests": scriptRequests,
			"awaitsocket":     scriptAwaitSocket,
			"sealcredentials": scriptSealCredentials, "nowhere": scriptNowhere, "sent": scriptSent, "sentbody": scriptSentBody, "putcontract": scriptPutContract,
			"export": scriptExport, "actionids": scriptActionIDs,
			"door": scriptDoor, "mode": scriptMode, "awaitrecords": scriptAwaitRecords, "exits": scriptExits,
			"freeaddress": scriptFreeAddress, "awaitaddress": scriptAwaitAddress,
			"mailcontract": scriptMailContract, "replay": scriptReplay, "awaitpending": scriptAwaitPending, "awaitrequests": scriptAwaitRequests,
			"events": scriptEvents, "metric": scriptMetric, "agentdoor": scriptAgentDoor,
		},
	})
}

type stageKey struct{}

func scriptStage(env *testscript.Env) error {
	p, err := provider.Open(filepath.Join(env.WorkDir, "ledger"))
	if err != nil {
		return err
	}
	env.Defer(func() { _ = p.Close() })
	url, err := p.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Values[stageKey{}] = p
	config := filepath.Join(env.WorkDir, "config")
	if err := os.MkdirAll(filepath.Join(config, "contracts"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"contracts/charge.yaml": strings.ReplaceAll(demoContract, "PROVIDER", url),
		"contracts/mail.yaml":   strings.ReplaceAll(mailContract, "PROVIDER", url),
		"credentials.yaml":      strings.ReplaceAll(demoCredentials, "HOST", strings.TrimPrefix(url, "http://")),
	} {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	verifier, err := filepath.Abs(filepath.Join("..", "..", "verifier", "deed-verify.mjs"))
	if err != nil {
		return err
	}
	socket, err := shortDir(env)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"PATH": filepath.Dir(built.deed) + string(os.PathListSeparator) + env.Getenv("PATH"), "PROVIDER": url,
		"DEED_CONFIG": "", "VERIFIER": verifier, "CONFIG": config, "DATA": filepath.Join(env.WorkDir, "state"), "SOCKET": filepath.Join(socket, "deed.sock"),
		"DEED_DEMO_SECRET": "canary-script-secret", "HOME": env.WorkDir,
	} {
		env.Setenv(name, value)
	}
	return nil
}

// shortDir is a directory whose path is short enough for a Unix socket.
func shortDir(env *testscript.Env) (string, error) {
	dir, err := os.MkdirTemp("", "deed-s-")
	if err == nil {
		env.Defer(func() { _ = os.RemoveAll(dir) })
	}
	return dir, err
}

func stageOf(ts *testscript.TestScript) *provider.Server {
	return ts.Value(stageKey{}).(*provider.Server)
}

// break KIND [TIMES] sets a fault of the provider; without KIND it behaves again.
func scriptBreak(ts *testscript.TestScript, _ bool, args []string) {
	var s provider.Switches
	if len(args) > 0 {
		f := provider.Fault{Kind: provider.Kind(args[0])}
		if len(args) > 1 {
			n, err := strconv.Atoi(args[1])
			ts.Check(err)
			f.Times = n
		}
		if len(args) > 2 {
			n, err := strconv.Atoi(args[2])
			ts.Check(err)
			f.Status = n
		}
		s.Faults = []provider.Fault{f}
	}
	ts.Check(stageOf(ts).Set(s))
}

// effects N and requests N hold the provider's own count against N.
func scriptEffects(ts *testscript.TestScript, _ bool, args []string) {
	count(ts, "effects", len(stageOf(ts).Effects()), args)
}

func scriptRequests(ts *testscript.TestScript, _ bool, args []string) {
	count(ts, "requests", len(stageOf(ts).Requests()), args)
}

func count(ts *testscript.TestScript, what string, got int, args []string) {
	if len(args) != 1 || fmt.Sprint(got) != args[0] {
		ts.Fatalf("%d %s, want %v", got, what, args)
	}
}

// awaitsocket PATH waits until a gateway answers there.
func scriptAwaitSocket(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if conn, err := net.Dial("unix", args[0]); err == nil {
			_ = conn.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nobody answers on %s", args[0])
}

// scriptAwait waits until something holds.
func scriptAwait(ts *testscript.TestScript, until func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !until(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("it did not come about")
		}
	}
}

const mailContract = `tool: send_email
description: Send a mail, at a provider without keys and without look-up.
input:
  type: object
  required: [to]
  properties:
    to: {type: string}
http:
  method: POST
  url: PROVIDER/v1/objects/{to}
  private: [127.0.0.0/8]
  json: {to: "${args.to}"}
on_lost_response:
  class: blocked_after_unknown
  attach_for: 15m
  scope: run
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 404, 422]}
attempts: 3
timeout: 5s
keep_result: 30d
`
