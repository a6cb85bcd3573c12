package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
)

// mailcontract LINE… writes the contract of send_email with more lines at its end. PROVIDER stands for the provider.
func scriptMailContract(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(mailContract+strings.Join(args, "\n")+"\n", "PROVIDER", ts.Getenv("PROVIDER"))
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("CONFIG"), "contracts", "mail.yaml"), []byte(text), 0o600))
}

// replay FROM TO brings the signed decision about the action FROM to the door once more, for the action TO.
func scriptReplay(ts *testscript.TestScript, neg bool, args []string) {
	r := scriptReader(ts)
	defer r.Close()
	request := func(id string) action.Approval {
		all, err := r.Approvals(context.Background(), store.ApprovalQuery{Action: action.ID(id)})
		ts.Check(err)
		if len(all) == 0 {
			ts.Fatalf("nobody was asked about %s", id)
		}
		return all[len(all)-1]
	}
	from, to := request(args[0]), request(args[1])
	said := from.Decisions[0]
	door := operator.NewClient(filepath.Join(filepath.Dir(ts.Getenv("SOCKET")), "operator.sock"))
	_, err := door.Approve(context.Background(), to.ID, operator.ApprovalDecision{
		ActionID: to.Action, Decision: said.Decision, Approver: said.Approver, Key: said.Signed.Key, Signature: said.Signed.Signature,
	})
	if (err != nil) != neg {
		ts.Fatalf("the door answered %v", err)
	}
	if err != nil {
		ts.Logf("the door answered: %v", err)
	}
}

// awaitpending N waits until N requests wait for a person, and sets $REQ1, $ASKED1 and so on to them and their actions.
func scriptAwaitPending(ts *testscript.TestScript, _ bool, args []string) {
	scriptAwait(ts, func() bool {
		r := scriptReader(ts)
		defer r.Close()
		all, err := r.Pending(context.Background(), 100)
		ts.Check(err)
		for i, p := range all {
			n := string(rune('1' + i))
			ts.Setenv("REQ"+n, string(p.ID))
			ts.Setenv("ASKED"+n, string(p.Action))
		}
		return string(rune('0'+len(all))) == args[0]
	})
}

// awaitrequests N waits until the provider has seen N requests.
func scriptAwaitRequests(ts *testscript.TestScript, _ bool, args []string) {
	scriptAwait(ts, func() bool { return fmt.Sprint(len(stageOf(ts).Requests())) == args[0] })
}
