package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A setting is one line of deed.yaml. The same table drives the file, the environment, the flags and Describe.
type setting struct {
	name     string
	flag     string                        // as given on the command line; "" when it was not
	fallback func(*Config) (string, error) // the default, which may depend on settings before it
	set      func(*Config, value) error    // checks the text and keeps it
	get      func(Config) string
}

func (s setting) env() string { return "DEED_" + strings.ToUpper(s.name) }

func settings(flags Overrides) []setting {
	return []setting{
		pathSetting("config_dir", flags.ConfigDir, func(c *Config) *string { return &c.ConfigDir }, defaultConfigDir),
		pathSetting("data_dir", flags.DataDir, func(c *Config) *string { return &c.DataDir }, defaultDataDir),
		pathSetting("key_dir", flags.KeyDir, func(c *Config) *string { return &c.KeyDir }, inDataDir("keys")),
		pathSetting("contracts", flags.Contracts, func(c *Config) *string { return &c.Contracts }, inConfigDir("contracts")),
		pathSetting("credentials", flags.Credentials, func(c *Config) *string { return &c.Credentials }, inConfigDir("credentials.yaml")),
		pathSetting("approvers", "", func(c *Config) *string { return &c.Approvers }, inConfigDir("approvers.yaml")),
		{"authorize_runs", "", always(runsByPolicy), setRuns, getRuns},
		socketSetting("socket", flags.Socket, func(c *Config) *string { return &c.Socket }, defaultSocket),
		socketSetting("operator_socket", flags.OperatorSocket, func(c *Config) *string { return &c.Operator }, besideSocket),
		{"listen", flags.Listen, always("127.0.0.1:7333"), setListen, getListen},
		{"longest_run", flags.LongestRun, always("24h"), setLongestRun, func(c Config) string { return c.LongestRun.String() }},
		{"wait", flags.Wait, always("45s"), setWait, func(c Config) string { return c.Wait.String() }},
		{"log_level", flags.LogLevel, always("info"), setLogLevel, func(c Config) string { return strings.ToLower(c.LogLevel.String()) }},
		{"origin", flags.Origin, always(""), setOrigin, func(c Config) string { return c.Origin }},
		pathSetting("vault", flags.Vault, func(c *Config) *string { return &c.Vault }, inDataDir("vault.age")),
		optionalPath("vault_identity", flags.VaultIdentity, func(c *Config) *string { return &c.VaultIdentity }),
		optionalPath("vault_passphrase_file", flags.VaultPassphraseFile, func(c *Config) *string { return &c.VaultPassphraseFile }),
		{"tls_roots", flags.TLSRoots, always(""), setTLSRoots, func(c Config) string { return c.TLSRoots }},
	}
}

// Who authorizes the run of a new agent process.
const (
	runsByPolicy = "policy" // nobody is asked: that the process was identified is enough
	runsByPerson = "person"
)

func setRuns(c *Config, v value) error {
	switch v.text {
	case runsByPolicy, runsByPerson:
		c.PersonRuns = v.text == runsByPerson
		return nil
	}
	return fmt.Errorf("%q authorizes no run; write %s or %s", v.text, runsByPolicy, runsByPerson)
}

func getRuns(c Config) string {
	if c.PersonRuns {
		return runsByPerson
	}
	return runsByPolicy
}

func pathSetting(name, flag string, field func(*Config) *string, fallback func(*Config) (string, error)) setting {
	set := func(c *Config, v value) (err error) {
		*field(c), err = absolute(v)
		return err
	}
	return setting{name, flag, fallback, set, func(c Config) string { return *field(&c) }}
}

// optionalPath is a path that need not be set.
func optionalPath(name, flag string, field func(*Config) *string) setting {
	s := pathSetting(name, flag, field, always(""))
	set := s.set
	s.set = func(c *Config, v value) error {
		if v.source == "default" {
			return nil
		}
		return set(c, v)
	}
	return s
}

// absolute resolves ~/ and what is relative.
func absolute(v value) (string, error) {
	path := v.text
	if strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%q is no path; write one, or leave the setting out", path)
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("~ has no meaning without HOME; write the whole path")
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) && v.dir != "" {
		path = filepath.Join(v.dir, path)
	}
	return filepath.Abs(path)
}

func socketSetting(name, flag string, field func(*Config) *string, fallback func(*Config) (string, error)) setting {
	set := func(c *Config, v value) (err error) {
		if *field(c), err = socketPath(v); err == nil && name == "operator_socket" && c.Operator == c.Socket {
			err = fmt.Errorf("%s is the agents' socket, and no agent may enter here; write another path", c.Socket)
		}
		return err
	}
	return setting{name, flag, fallback, set, func(c Config) string { return *field(&c) }}
}

func socketPath(v value) (string, error) {
	path, err := absolute(v)
	if err != nil {
		return "", err
	}
	// The kernel keeps the path in a fixed array, with a zero byte at its end.
	longest := 103
	if runtime.GOOS == "linux" {
		longest = 107
	}
	if len(path) > longest {
		return "", fmt.Errorf("the path %s has %d bytes and this system takes %d; write a shorter one", path, len(path), longest)
	}
	return path, nil
}

func setListen(c *Config, v value) error {
	if v.text == "off" {
		c.Listen = ""
		return nil
	}
	const instead = `write a loopback address such as 127.0.0.1:7333, or "off"`
	// A name could resolve to anything by the time it is used; this one is settled here.
	text := v.text
	if port, ok := strings.CutPrefix(text, "localhost:"); ok {
		text = "127.0.0.1:" + port
	}
	if port, ok := strings.CutPrefix(text, ":"); ok {
		return fmt.Errorf("%q means every network of this machine; write 127.0.0.1:%s", v.text, port)
	}
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		return fmt.Errorf("%q is no address with a port; %s", v.text, instead)
	}
	if ip := addr.Addr().Unmap(); !ip.IsLoopback() || ip.Zone() != "" {
		return fmt.Errorf("%q can be reached from other machines, and deed speaks no TLS yet: tokens would travel in the clear; %s", v.text, instead)
	}
	c.Listen = text
	return nil
}

func getListen(c Config) string {
	if c.Listen == "" {
		return "off"
	}
	return c.Listen
}

func setWait(c *Config, v value) error {
	wait, err := time.ParseDuration(v.text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is no duration; write a number with a unit, such as 45s", v.text)
	case wait <= 0 || wait > MaxWait:
		return fmt.Errorf("%s is out of range; write a duration above 0s and up to %s, since clients give up after a minute", v.text, MaxWait)
	}
	c.Wait = wait
	return nil
}

func setLongestRun(c *Config, v value) error {
	longest, err := time.ParseDuration(v.text)
	if err != nil || longest <= 0 {
		return fmt.Errorf("%q is no duration above 0s; write a number with a unit, such as 24h", v.text)
	}
	c.LongestRun = longest
	return nil
}

func setLogLevel(c *Config, v value) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[v.text]
	if !ok {
		return fmt.Errorf("%q is no log level; write debug, info, warn or error", v.text)
	}
	c.LogLevel = level
	return nil
}

// setOrigin keeps the journal's name to what a checkpoint can carry on its first line.
func setOrigin(c *Config, v value) error {
	if v.source == "default" {
		return nil
	}
	bad := func(r rune) bool { return r == '+' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if v.text == "" || len(v.text) > 255 || strings.ContainsFunc(v.text, bad) {
		return fmt.Errorf("%s is no name for a journal; write up to 255 characters without spaces and +, such as deed.example.com/prod",
			strconv.QuoteToASCII(v.text))
	}
	c.Origin = v.text
	return nil
}

func setTLSRoots(c *Config, v value) error {
	if v.source == "default" {
		return nil
	}
	path, err := absolute(v)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w; write the path of a PEM file that deed can read", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no certificate; write the path of a PEM file with at least one", path)
	}
	c.TLSRoots = path
	return nil
}
