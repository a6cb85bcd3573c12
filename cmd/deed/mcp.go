package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"deed.dev/deed/internal/config"
	"deed.dev/deed/internal/identity"
	"deed.dev/deed/internal/store"
)

func (a *app) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Connect an agent over stdio",
		Long: `Speak MCP on standard input and output. A running gateway is used through its Unix socket, so that what it
knows outlives the agent; when none runs, the gateway runs inside this process. Nothing but protocol is
ever written to standard output.`,
		Example: `  deed mcp
  claude mcp add deed -- deed mcp`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return explain(a.mcp(cmd.Context())) },
	}
}

func (a *app) mcp(ctx context.Context) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	return a.withGateway(ctx, cfg, a.bridge, func(ctx context.Context, l *line, peer *identity.Peer) error {
		return l.mcp.ServeStream(ctx, io.NopCloser(a.in), keepOpen{a.out}, peer.Actor(), "mcp-stdio")
	})
}

// withGateway uses the gateway that runs, or else one inside this process.
func (a *app) withGateway(ctx context.Context, cfg config.Config, running func(context.Context, *net.UnixConn) error,
	inside func(context.Context, *line, *identity.Peer) error,
) error {
	if conn, err := dialSocket(cfg.Socket); err == nil {
		return running(ctx, conn)
	}
	err := a.inProcess(ctx, cfg, inside)
	if !errors.Is(err, store.ErrLocked) {
		return err
	}
	// Somebody was faster. A gateway that is starting opens its socket in a moment.
	for range 50 {
		if conn, dialled := dialSocket(cfg.Socket); dialled == nil {
			return running(ctx, conn)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// bridge passes bytes between an agent and the running gateway. It understands none of them.
func (a *app) bridge(ctx context.Context, conn *net.UnixConn) error {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		_, _ = io.Copy(conn, a.in)
		_ = conn.CloseWrite() // the agent has said all; answers may still come
	}()
	_, err := io.Copy(a.out, conn)
	if err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("the connection to the gateway broke: %w; what was asked is on its record, ask again to see it", err)
	}
	return nil
}

// inProcess runs a whole gateway for the process that started this one.
func (a *app) inProcess(ctx context.Context, cfg config.Config, use func(context.Context, *line, *identity.Peer) error) error {
	peer, err := identity.ParentActor()
	if err != nil {
		return fmt.Errorf("see who started deed: %w", err)
	}
	log := a.logger(max(cfg.LogLevel, slog.LevelWarn))
	l, err := openLine(ctx, cfg, log)
	if err != nil {
		return err
	}
	if _, err := l.gateway.Recover(ctx); err != nil {
		return errors.Join(err, l.finish())
	}
	return errors.Join(use(ctx, l, peer), l.finish())
}

// keepOpen is an output that outlives the connection written to it.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
