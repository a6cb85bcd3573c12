package provider

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Ready is the one line that Main prints once it serves.
type Ready struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	CA  string `json:"ca,omitempty"` // PEM file of the certificate, with --tls
}

// Main runs a provider in a process of its own until SIGTERM or SIGINT and
// returns the exit code: 0 when told to stop, 1 for a failure, 2 for misuse.
//
//	--ledger FILE                the ledger, made if absent
//	--listen 127.0.0.1:0         address; port 0 takes a free one
//	--tls                        self-signed certificate for 127.0.0.1 and localhost
func Main(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("provider", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "127.0.0.1:0", "`address` to listen on")
	ledger := flags.String("ledger", "", "ledger `file`, made if absent")
	secure := flags.Bool("tls", false, "serve TLS with a self-signed certificate")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *ledger == "" || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "provider: --ledger FILE is needed, and no other argument")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *ledger, *listen, *secure, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "provider:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, ledgerPath, addr string, secure bool, stdout, stderr io.Writer) (err error) {
	s, err := Open(ledgerPath)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.Close(); err == nil {
			err = closeErr
		}
	}()
	if torn := s.Torn(); len(torn) > 0 {
		fmt.Fprintf(stderr, "provider: the last line of %s was torn; its %d bytes are in %s.torn\n", ledgerPath, len(torn), ledgerPath)
	}

	ready := Ready{PID: os.Getpid()}
	if secure {
		certificate, certPEM, err := SelfSigned()
		if err != nil {
			return err
		}
		ready.CA = ledgerPath + ".ca.pem"
		if err := os.WriteFile(ready.CA, certPEM, 0o600); err != nil {
			return fmt.Errorf("write certificate: %w", err)
		}
		ready.URL, err = s.ListenTLS(addr, certificate)
		if err != nil {
			return err
		}
	} else {
		ready.URL, err = s.Listen(addr)
		if err != nil {
			return err
		}
	}
	if _, err := stdout.Write(append(encode(ready), '\n')); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	<-ctx.Done()
	return nil
}

// SelfSigned makes a certificate for 127.0.0.1, ::1 and localhost that lasts a
// day, and its PEM form for a client's list of roots.
func SelfSigned() (certificate tls.Certificate, certPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "lab payment provider"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make certificate: %w", err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, certPEM, nil
}
