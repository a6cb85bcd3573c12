package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// listenSocket opens the Unix socket for agents of this machine. A socket file that nobody answers on is left from an
// earlier process and is replaced; the data directory's lock has already made sure that no other daemon runs there.
func listenSocket(path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the Unix socket: %w", err)
	}
	if conn, err := dialSocket(path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("another gateway answers on the socket %s; stop it, or choose another with --socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace the old Unix socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open the Unix socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the Unix socket: %w", err), l.Close())
	}
	return l, nil
}

func dialSocket(path string) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}
