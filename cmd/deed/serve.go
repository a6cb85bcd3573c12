package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/identity"
)

func (a *app) serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Run the gateway until it is told to stop (SIGTERM or Ctrl-C). It serves MCP over HTTP, for holders of a token,
and over a Unix socket, for agents of this machine. Those who look after it have a socket of their own, for deed's
own user and root (deed review, deed undo, deed status, deed vault). What was sent when it stops is finished or recorded.

When there is a vault, it starts locked, and nothing that needs a credential is sent until deed vault unlock, unless
it is given what opens the vault: an identity file, a file with the passphrase, or one of them as a systemd
credential (deed-vault-identity, deed-vault-passphrase).`,
		Example: `  deed serve
  deed serve --listen 127.0.0.1:7333
  deed serve --config ./deed --data ./state
  deed serve --vault-passphrase-file /etc/deed/passphrase`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return explain(a.serve(cmd.Context())) },
	}
	c.Flags().StringVar(&a.flags.Listen, "listen", "", "address of the HTTP door; loopback only")
	a.vaultKeyFlags(c.Flags())
	c.Flags().StringVar(&a.flags.LogLevel, "log-level", "", "debug, info, warn or error")
	return c
}

// serve runs the daemon: build the line, take up what an earlier process left, then open the doors.
func (a *app) serve(ctx context.Context) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	log := a.logger(cfg.LogLevel)
	line, err := openLine(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer line.close()
	if err := line.http.SelfTest(ctx); err != nil {
		return fmt.Errorf("the HTTP client does not make exactly one delivery for one attempt, so nothing is started: %w", err)
	}
	found, err := line.gateway.Recover(ctx)
	if err != nil {
		return fmt.Errorf("take up what an earlier process left: %w", err)
	}
	doors, err := openDoors(ctx, cfg, line, log)
	if err != nil {
		return err
	}
	log.Info("ready", "http", doors.url(), "socket", cfg.Socket, "operator_socket", cfg.Operator, "tools", len(line.tools), "open_actions", found, "version", version())
	if a.json { // one line for whoever started it
		if err := a.printJSON(map[string]any{"http": doors.url(), "socket": cfg.Socket, "operator_socket": cfg.Operator, "pid": os.Getpid()}); err != nil {
			return err
		}
	}
	go line.gateway.Run(ctx)
	return doors.serve(ctx)
}

// doors are the listeners of the daemon.
type doors struct {
	line     *line
	log      *slog.Logger
	http     net.Listener // nil when the HTTP door is off
	socket   *net.UnixListener
	operator *net.UnixListener
	server   *http.Server
	open     context.Context // ends when streams that would wait for ever have to end
	shut     context.CancelFunc
}

func openDoors(ctx context.Context, cfg config.Config, l *line, log *slog.Logger) (*doors, error) {
	d := &doors{line: l, log: log}
	var err error
	if d.socket, err = listenSocket(cfg.Socket); err != nil {
		return nil, err
	}
	if d.operator, err = listenSocket(cfg.Operator); err != nil {
		_ = d.socket.Close()
		return nil, fmt.Errorf("the operator's door: %w", err)
	}
	if cfg.Listen == "" {
		return d, nil
	}
	if d.http, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen); err != nil {
		_ = d.socket.Close()
		_ = d.operator.Close()
		return nil, fmt.Errorf("open the HTTP door: %w; choose another address with --listen", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", l.mcp.Handler())
	d.open, d.shut = context.WithCancel(context.Background()) //nolint:gosec // serve calls it
	d.server = &http.Server{
		BaseContext: func(net.Listener) context.Context { return d.open }, Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	return d, nil
}

func (d *doors) url() string {
	if d.http == nil {
		return ""
	}
	return "http://" + d.http.Addr().String() + "/mcp"
}

// serve answers until ctx ends, then closes the doors and waits for what is under way.
func (d *doors) serve(ctx context.Context) error {
	failed := make(chan error, 3)
	operators, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	left := make(chan struct{})
	go func() { failed <- d.serveSocket(ctx) }()
	go func() { defer close(left); failed <- d.line.operator.Serve(operators, d.operator) }()
	if d.http != nil {
		go func() { failed <- d.server.Serve(d.http) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	_ = d.socket.Close()
	background := context.WithoutCancel(ctx)
	targets, cancel := context.WithTimeout(background, drain)
	defer cancel()
	closed := d.line.gateway.Close(targets) // first what is under way, so that its answers can still be handed over
	leave()
	<-left
	if d.http != nil {
		callers, cancel := context.WithTimeout(background, handOver)
		defer cancel()
		time.AfterFunc(handOver/2, d.shut)
		err = errors.Join(err, ignoreClosed(d.server.Shutdown(callers)))
	}
	return errors.Join(ignoreClosed(err), closed)
}

const (
	drain    = 20 * time.Second       // for targets that have not answered yet; what has no answer by then is unknown at the next start
	handOver = 500 * time.Millisecond // for answers on their way to callers, and for streams that only wait
)

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// serveSocket serves each agent that connects over the Unix socket. Who it is, the kernel says.
func (d *doors) serveSocket(ctx context.Context) error {
	for {
		conn, err := d.socket.AcceptUnix()
		if err != nil {
			return err
		}
		go d.servePeer(ctx, conn)
	}
}

func (d *doors) servePeer(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	peer, err := identity.PeerOf(conn)
	if err != nil {
		d.log.Warn("a caller could not be identified and was turned away", "error", err)
		return
	}
	if err := d.line.mcp.ServeStream(ctx, conn, conn, peer.Actor(), "mcp-socket"); err != nil {
		d.log.Warn("a connection ended badly", "actor", peer.Actor().String(), "error", err)
	}
}
