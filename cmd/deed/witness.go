package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"deed.dev/deed/internal/dirlock"
	"deed.dev/deed/internal/witness"
	"deed.dev/deed/journal"
)

func (a *app) witnessCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "witness",
		Short: "Run a witness for journals, on another account or machine than the gateway",
		Long: `A witness signs that it has seen the checkpoint of a journal, if the journal has only grown since the last one that it
signed. It keeps the size and root of each journal and nothing else. A journal that is rewritten cannot get its
signature. It speaks C2SP tlog-witness, so it may watch any log of that kind, and any such witness may watch deed.

It proves something only where the gateway cannot write: run it under another account, or on another machine.`,
		Example: `  deed witness init witness.example/w1     # once
  deed witness watch 'gw.example/audit+1a2b3c4d+AZ…'
  deed witness keys
  deed witness serve`,
	}
	c.PersistentFlags().StringVar(&dir, "dir", "", "directory of the witness (default: witness in the data directory)")
	c.AddCommand(a.witnessInit(&dir), a.witnessWatch(&dir), a.witnessKeys(&dir), a.witnessServe(&dir))
	return c
}

// witnessDir is where the witness keeps its key and state.
func (a *app) witnessDir(dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	cfg, err := a.config()
	return filepath.Join(cfg.DataDir, "witness"), err
}

func (a *app) witnessInit(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "init NAME", Short: "Make a witness with a key of its own, once", Args: cobra.ExactArgs(1),
		Long: `Make a witness: a new private key that only this user can read, an empty list of journals and an empty state. NAME is
how the witness signs, like a URL without its scheme: witness.example/w1. It prints the public key.`,
		Example: "  deed witness init witness.example/w1\n  deed witness init witness.example/w1 --dir /var/lib/deed-witness",
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := a.witnessDir(*dir)
			if err != nil {
				return err
			}
			key, err := witness.Create(path, args[0])
			if err != nil {
				return explain(fmt.Errorf("no witness was made: %w", err))
			}
			if a.json {
				return a.printJSON(map[string]any{"dir": path, "key": key.String()})
			}
			fmt.Fprintln(a.out, key)
			fmt.Fprintln(a.err, "\nThis public key goes into the policy of those who trust the witness. Next:\n  deed witness watch KEY-OF-THE-JOURNAL\n  deed witness serve")
			return nil
		},
	}
}

func (a *app) witnessWatch(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "watch KEY", Short: "Add a journal by its public key, from the next start on", Args: cobra.ExactArgs(1),
		Example: "  deed witness watch 'gw.example/audit+1a2b3c4d+AZ…'",
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := a.witnessDir(*dir)
			if err != nil {
				return err
			}
			key, err := journal.ParseKey(args[0])
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if key.IsWitness() {
				return &exitError{exitUsage, errors.New("this is the key of a witness; write the public key of a journal")}
			}
			if err := witness.Watch(path, key); err != nil {
				return explain(noWitness(path, err))
			}
			if a.json {
				return a.printJSON(map[string]any{"watches": key.Name(), "key": key.String()})
			}
			fmt.Fprintf(a.err, "The witness watches %s from its next start on.\n", key.Name())
			return nil
		},
	}
}

func (a *app) witnessKeys(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "keys", Short: "Print the public key of the witness, and those that it watches", Args: cobra.NoArgs,
		Example: "  deed witness keys\n  deed witness keys --json",
		RunE: func(*cobra.Command, []string) error {
			path, err := a.witnessDir(*dir)
			if err != nil {
				return err
			}
			own, logs, err := witness.Keys(path)
			if err != nil {
				return explain(noWitness(path, err))
			}
			if a.json {
				watched := []string{}
				for _, l := range logs {
					watched = append(watched, l.String())
				}
				return a.printJSON(map[string]any{"key": own.String(), "watches": watched})
			}
			fmt.Fprintf(a.out, "witness %s\n", own)
			for _, l := range logs {
				fmt.Fprintf(a.out, "log %s\n", l)
			}
			return nil
		},
	}
}

func noWitness(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no witness in %s; make one with deed witness init, or name its directory with --dir", dir)
	}
	return err
}

func (a *app) witnessServe(dir *string) *cobra.Command {
	var listen string
	c := &cobra.Command{
		Use: "serve", Short: "Answer journals that ask for a cosignature", Args: cobra.NoArgs,
		Long: `Answer POST /add-checkpoint until it is told to stop (SIGTERM or Ctrl-C). There is no login: a request counts only if
a journal that is watched has signed it. The door speaks HTTP; put a proxy with TLS before it if it is not on loopback.`,
		Example: "  deed witness serve\n  deed witness serve --listen 127.0.0.1:7334 --dir /var/lib/deed-witness",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return explain(a.serveWitness(cmd.Context(), *dir, listen))
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7334", "address of the door")
	return c
}

// Bounds of the witness's door.
const (
	witnessCallers  = 256
	witnessHandOver = 5 * time.Second
)

func (a *app) serveWitness(ctx context.Context, dir, listen string) error {
	path, err := a.witnessDir(dir)
	if err != nil {
		return err
	}
	log := a.logger(slog.LevelInfo)
	w, err := witness.Open(path, time.Now, log)
	if errors.Is(err, dirlock.ErrHeld) {
		return fmt.Errorf("%w\nA witness runs there already. Two with one key could sign two histories, so this one does not start", err)
	}
	if err != nil {
		return err
	}
	defer w.Close()
	door, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("open the door of the witness: %w; choose another address with --listen", err)
	}
	url := "http://" + door.Addr().String()
	log.Info("ready", "url", url, "key", w.Key().String())
	if a.json { // one line for whoever started it
		if err := a.printJSON(map[string]any{"url": url, "key": w.Key().String(), "pid": os.Getpid()}); err != nil {
			return err
		}
	}
	server := w.Server()
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(netutil.LimitListener(door, witnessCallers)) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	callers, cancel := context.WithTimeout(context.WithoutCancel(ctx), witnessHandOver)
	defer cancel()
	err = server.Shutdown(callers)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return ignoreClosed(err)
}
