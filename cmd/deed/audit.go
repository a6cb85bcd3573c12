package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/audit"
	"deed.dev/deed/internal/logkey"
	"deed.dev/deed/internal/operator"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/journal"
)

const auditCodes = `Exit codes of an audit:
  0  all is well
  1  damaged: the chain is broken, a signature is false, or a checkpoint contradicts the records
  2  unproven: no checkpoint, or no public key to check it with (or the command line is wrong)
  3  records after the newest checkpoint that a policy counts
  4  something could not be read`

func (a *app) auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Hand out the journal, and verify it",
		Long: `Every step of every action stands in one journal, whose records are chained by their hashes and whose head is
signed. Hand it out with export, receipt and checkpoint; whoever gets it verifies it with verify and
verify-receipt, offline, with the public key of the log and nothing else.

` + auditCodes,
		Example: `  deed audit export journal.events
  deed audit verify journal.events --key log.pub
  deed audit receipt act_01j4k8j7dx7v000000000000ab -o charge.receipt
  deed audit verify-receipt charge.receipt --key log.pub`,
	}
	c.AddCommand(a.auditVerifyCommand(), a.auditExportCommand(), a.auditTailCommand(), a.auditCheckpointCommand(),
		a.auditReceiptCommand(), a.auditVerifyReceiptCommand(), a.auditKeysCommand())
	return c
}

// signing is who signs for the journal: the gateway that writes it, or, when none runs, this process.
type signing interface {
	Checkpoint(ctx context.Context, size uint64) ([]byte, error)
	Receipt(ctx context.Context, id action.ID) ([]byte, error)
	Keys(ctx context.Context) ([]audit.KeyInUse, error)
}

// withJournal reads the records directly, and finds who signs for them.
func (a *app) withJournal(ctx context.Context, use func(context.Context, *sqlite.Reader, signing) error) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	r, err := sqlite.OpenReader(ctx, cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("nothing is on record in %s yet; a gateway begins the record when it starts (`deed serve`)", cfg.DataDir)
	}
	if err != nil {
		return explain(err)
	}
	defer r.Close()
	if running(cfg.Operator) {
		return spoken(use(ctx, r, ofThisJournal{operator.NewClient(cfg.Operator), r, cfg.Operator}))
	}
	names := audit.ReadOnly{Keys: r}
	keys, err := audit.VisitKeys(ctx, cfg.KeyDir, names)
	if err != nil {
		return err
	}
	log, err := audit.OpenLog(ctx, audit.Options{Records: r, Keys: keys})
	if err != nil {
		return err
	}
	return spoken(use(ctx, r, audit.Desk{Log: log, Records: r, Events: r, Names: names}))
}

// ofThisJournal is a gateway that runs, once it is sure that it writes the journal which is read here.
type ofThisJournal struct {
	*operator.Client
	records *sqlite.Reader
	socket  string
}

// Checkpoint gives a signed checkpoint of the records that are read here.
func (o ofThisJournal) Checkpoint(ctx context.Context, size uint64) ([]byte, error) {
	signed, err := o.Client.Checkpoint(ctx, size)
	if err != nil {
		return nil, err
	}
	c, err := journal.ReadCheckpoint(signed)
	if err != nil {
		return nil, err
	}
	tree, err := journal.LoadTree(c.Size, o.records.Tree(ctx))
	if err != nil || tree.Root() != c.Root {
		return nil, fmt.Errorf("the gateway at %s writes another journal (%s); choose its data directory with --data, or the socket of the right "+
			"gateway with --operator-socket", o.socket, c.Origin)
	}
	return signed, nil
}

// spoken turns what the operator's door refuses into words.
func spoken(err error) error {
	var refused *action.Error
	if errors.As(err, &refused) {
		return errors.New(string(refused.Code) + ": " + refused.Message)
	}
	return explain(err)
}

// trust is what the commands that verify take from their user.
type trust struct {
	policy string
	keys   []string
}

func (t *trust) flags(c *cobra.Command) {
	c.Flags().StringVar(&t.policy, "policy", "", "file with a C2SP tlog-policy: the logs and witnesses that are trusted")
	c.Flags().StringArrayVar(&t.keys, "key", nil, "public key of the log: a file (log.pub) or the key itself; may be repeated")
	_ = c.MarkFlagFilename("policy")
	_ = c.MarkFlagFilename("key", "pub")
}

// policyFor is what to trust. When nothing was given, the keys of this machine's own log are trusted for its own journal,
// which origin names; otherwise it is nil.
func (a *app) policyFor(t trust, origin string) (*journal.Policy, error) {
	var policy *journal.Policy
	if t.policy != "" {
		text, err := os.ReadFile(t.policy)
		if err != nil {
			return nil, err
		}
		if policy, err = journal.ParsePolicy(text); err != nil {
			return nil, fmt.Errorf("%s: %w", t.policy, err)
		}
	}
	var keys []journal.Key
	for _, given := range t.keys {
		read, err := publicKeys(given)
		if err != nil {
			return nil, err
		}
		keys = append(keys, read...)
	}
	switch {
	case policy != nil:
		return policy.WithLogs(keys...), nil
	case len(keys) > 0:
		return journal.TrustLogs(keys...), nil
	}
	cfg, err := a.config()
	if err != nil {
		return nil, nil // verifying needs no configuration
	}
	own, err := logkey.ReadPublic(cfg.KeyDir)
	if err != nil || len(own) == 0 || own[0].Name() != origin {
		return nil, nil
	}
	return journal.TrustLogs(own...), nil
}

// publicKeys reads --key: the key itself, or a file with one a line.
func publicKeys(given string) (keys []journal.Key, err error) {
	if key, err := journal.ParseKey(given); err == nil {
		return []journal.Key{key}, nil
	}
	text, err := os.ReadFile(given)
	if err != nil {
		return nil, fmt.Errorf("--key is neither a key nor a file that can be read: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		key, err := journal.ParseKey(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", given, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no key", given)
	}
	return keys, nil
}
