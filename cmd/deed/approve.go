package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/approval"
	"deed.dev/deed/internal/digest"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store"
)

// pen are the flags of a decision that is signed.
type pen struct {
	as, key, passphrase string
	yes, all            bool
}

func (a *app) approveCommand() *cobra.Command {
	return a.signedDecision(action.Approve, &cobra.Command{
		Use: "approve ACTION|REQUEST", Short: "Approve what an agent wants to do: it is SENT at once",
		Long: `Show what exactly would be sent, ask, and sign the approval with your key. It is bound to this action, its resolved
target, its credential and its bytes, it ends when the request ends, and it counts once. What was approved is sent at
once, also when its caller has gone.

What the signature shows: that somebody had your key file and its passphrase. A program that runs as your user could
have both, so keep the gateway and its approvers.yaml under another user where that matters.`,
		Example: `  deed approve act_01j4k8j7dx7v000000000000ab
  deed approve apr_01j4k8j7dx7v000000000000ab --key ~/.ssh/id_ed25519 --as ada`,
	})
}

func (a *app) denyCommand() *cobra.Command {
	return a.signedDecision(action.Deny, &cobra.Command{
		Use: "deny ACTION|REQUEST", Short: "Deny what an agent wants to do: it is rejected for good",
		Long: `Show what was asked, and sign the denial with your key. It is final: nothing was sent, nothing will be, and the agent's
own retries are told so. A signed denial can never be shown as an approval.`,
		Example: "  deed deny act_01j4k8j7dx7v000000000000ab",
	})
}

func (a *app) signedDecision(is action.ApprovalDecision, c *cobra.Command) *cobra.Command {
	var f pen
	c.Args = cobra.ExactArgs(1)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return a.decide(cmd.Context(), func(ctx context.Context, at desk) (action.Status, int, error) {
			return a.sign(ctx, at, args[0], is, f)
		})
	}
	c.ValidArgsFunction = a.completeActions(store.Query{States: []action.State{action.AwaitingApproval}})
	c.Flags().StringVar(&f.as, "as", "", "your name in approvers.yaml (default: the one that it gives to your key)")
	c.Flags().StringVar(&f.key, "key", "", "your key file, in OpenSSH's format (default: approver.key in the configuration directory)")
	c.Flags().StringVar(&f.passphrase, "passphrase-file", "", "read the passphrase from the first line of this file")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&f.all, "all", false, "show the whole body, however long")
	return c
}

// sign shows what is asked, makes sure that it is meant, signs it and brings it to the gateway.
func (a *app) sign(ctx context.Context, at desk, id string, is action.ApprovalDecision, f pen) (action.Status, int, error) {
	none := action.Status{}
	r, op, err := requestAt(ctx, at, id)
	if err != nil {
		return none, 0, err
	}
	if err := r.Print(a.err, op, f.all); err != nil {
		return none, 0, err
	}
	if r.State != action.ApprovalOpen {
		return none, 0, &exitError{exitRefused, fmt.Errorf("the request is %s already; nothing was decided and nothing was sent", r.State)}
	}
	if err := a.agreed(is, f.yes); err != nil {
		return none, 0, err
	}
	signer, err := a.openKey(f)
	if err != nil {
		return none, 0, err
	}
	name, err := a.nameOf(signer, f.as)
	if err != nil {
		return none, 0, err
	}
	expires, err := approval.ParseTime(r.Expires)
	if err != nil {
		return none, 0, err
	}
	signed, err := signer.Sign(approval.Statement{
		Approval: r.ApprovalID, Action: r.ActionID, Binding: r.Full.Binding, Verdict: is, Approver: name, Expires: expires, Nonce: r.Full.Nonce,
	})
	if err != nil {
		return none, 0, err
	}
	s, err := at.Approve(ctx, r.ApprovalID, operator.ApprovalDecision{
		ActionID: r.ActionID, Decision: is, Approver: name, Key: signed.Key, Signature: signed.Signature,
	})
	if err != nil || is == action.Deny || s.State == action.AwaitingApproval {
		return s, exitOK, err // the decision is what was asked for, and it is on record
	}
	return s, exitCode(s.Code), nil
}

// requestAt reads a request, and makes sure by itself that the operation which it comes with is the one that is asked about:
// whoever signs relies on no one's word for that.
func requestAt(ctx context.Context, at desk, id string) (operator.Request, action.Operation, error) {
	var op action.Operation
	r, err := at.Request(ctx, id)
	if err != nil {
		return r, op, err
	}
	bad := func(why string) error {
		return &exitError{exitFailed, fmt.Errorf("%s; nothing was decided", why)}
	}
	if r.Full == nil || json.Unmarshal(r.Full.Operation, &op) != nil {
		return r, op, bad("the gateway gave no operation that can be read")
	}
	commitment := action.CommitmentTo(r.Full.Salt, r.Full.Operation)
	if commitment != r.Full.Commitment {
		return r, op, bad("the operation that the gateway shows is not the one on record")
	}
	var sum string
	if run := r.Full.Run; r.Asks == action.AsksRun && run != nil {
		sum, err = digest.RunBinding(action.Run{ID: run.RunID, Actor: action.Actor{Kind: run.Kind, Identity: run.Identity, Evidence: run.Evidence}})
	} else if r.Asks == action.AsksEachUse {
		sum, err = digest.Binding(r.ActionID, op, commitment)
	}
	if err != nil || sum != r.Full.Binding {
		return r, op, bad("what the gateway shows is not what the request is bound to")
	}
	return r, op, nil
}

// agreed asks on a terminal. Elsewhere nobody can answer, and only a denial, which sends nothing, goes on.
func (a *app) agreed(is action.ApprovalDecision, yes bool) error {
	if yes || is == action.Deny && !typedAt(a.in) {
		return nil
	}
	if !typedAt(a.in) {
		return &exitError{exitUsage, errors.New("approving sends it, and there is no terminal to ask on; give --yes if that is meant. Nothing was decided")}
	}
	question := "Approve it? It is sent at once."
	if is == action.Deny {
		question = "Deny it, for good?"
	}
	fmt.Fprint(a.err, question+" [y/N] ")
	line, _ := bufio.NewReader(a.in).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return &exitError{exitFailed, errors.New("not confirmed; nothing was decided and nothing was sent")}
	}
	return nil
}

// openKey opens the approver's own key with its passphrase.
func (a *app) openKey(f pen) (*approval.Signer, error) {
	path, err := a.keyPath(f.key)
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("read your key: %w; `deed approver new NAME` makes one, and --key names another. Nothing was decided", err)}
	}
	passphrase, err := a.passphrase(f.passphrase, "Passphrase of your key: ")
	if err != nil {
		return nil, err
	}
	signer, err := approval.OpenKeyFile(file, passphrase)
	clear(passphrase)
	if err != nil {
		return nil, &exitError{exitFailed, fmt.Errorf("%w; nothing was decided", err)}
	}
	return signer, nil
}

func (a *app) keyPath(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	cfg, err := a.config()
	return cfg.ConfigDir + string(os.PathSeparator) + "approver.key", err
}

// nameOf is the name under which the signature is checked.
func (a *app) nameOf(signer *approval.Signer, as string) (string, error) {
	if as != "" {
		return as, nil
	}
	cfg, err := a.config()
	if err != nil {
		return "", err
	}
	policy, err := approval.PolicyFile(cfg.Approvers).Policy()
	if err != nil {
		return "", &exitError{exitUsage, fmt.Errorf("who you are is not known: %w; or say it with --as NAME. Nothing was decided", err)}
	}
	who, ok := policy.Of(signer.Public())
	if !ok {
		return "", &exitError{exitRefused, errors.New("approvers.yaml gives your key to nobody; nothing was decided")}
	}
	return who.Name, nil
}

// passphrase is the one that a file holds, or one that is typed at the terminal unseen.
func (a *app) passphrase(path, prompt string) ([]byte, error) {
	if path != "" {
		text, err := privateFile(path)
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		return firstLine(text), nil
	}
	if !typedAt(a.in) {
		return nil, &exitError{exitUsage, errors.New("there is no terminal to type a passphrase at; give --passphrase-file. Nothing was decided")}
	}
	return a.typed(prompt)
}
