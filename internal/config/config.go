// Package config is how deed is set up: one struct, read once and checked once, from built-in defaults, then deed.yaml,
// then the environment, then flags. Whatever is wrong ends with an error that says where it stands and what to write
// instead.
//
// It refuses to know what the settings are used for: it opens no database, no socket and no vault. There is no setting
// for how long a result or an identity is kept, since only a tool's contract can say that.
package config

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// Config holds every setting. All paths in it are absolute. Make one with Load.
type Config struct {
	ConfigDir   string        // deed.yaml lies here, and what people write beside it
	DataDir     string        // what deed writes: records, payloads, tokens
	KeyDir      string        // the key of the journal's log, and the newest checkpoint that it signed
	Contracts   string        // the directory of tool contracts
	Credentials string        // the file of credentials
	Approvers   string        // the file that says who may approve; it may be absent
	PersonRuns  bool          // a person authorizes the run of each new agent process
	Socket      string        // the Unix socket for agents on this machine
	Operator    string        // the Unix socket for those who look after deed
	Listen      string        // host:port of the HTTP door; "" when it is off
	LongestRun  time.Duration // how long a run of an agent may last: what a retry needs is kept for longer
	Wait        time.Duration // how long one call may wait for an outcome before it is told to ask again
	LogLevel    slog.Level
	Origin      string // the name of the journal; "" keeps the one that it has
	TLSRoots    string // a PEM file of further authorities for the certificates of targets; "" for none
	Vault       string // the encrypted file of values; it may be absent

	VaultIdentity       string // the file of the key that opens it; "" for none
	VaultPassphraseFile string // the file of the passphrase that opens it; "" for none

	from map[string]string // by setting: where its value came from
}

// MaxWait is the longest wait that Load accepts: common MCP clients give up on a call after 60 seconds.
const MaxWait = 55 * time.Second

// Overrides are the flags that were given on the command line. An empty field was not given.
type Overrides struct {
	ConfigDir, DataDir, KeyDir, Contracts, Credentials, Socket, OperatorSocket, Listen, LongestRun, Wait, LogLevel, Origin, TLSRoots string
	Vault, VaultIdentity, VaultPassphraseFile                                                                                        string
}

// Load reads the settings. A missing deed.yaml is no error; a setting in it that deed does not know is one.
func Load(flags Overrides) (Config, error) {
	c := Config{from: map[string]string{}}
	all := settings(flags)
	if err := c.take(all[0], value{}); err != nil { // config_dir: the file cannot move itself
		return Config{}, err
	}
	file, err := readFile(filepath.Join(c.ConfigDir, "deed.yaml"), all[1:])
	if err != nil {
		return Config{}, err
	}
	for _, s := range all[1:] {
		if err := c.take(s, file[s.name]); err != nil {
			return Config{}, err
		}
	}
	return c, nil
}

// value is the text of a setting and where it stands. An empty source means that there is none.
type value struct {
	text, source string
	dir          string // what a relative path in it is relative to; "" for the working directory
}

// take sets s from the strongest source that has it: flag, environment, file, default.
func (c *Config) take(s setting, file value) error {
	v := file
	if text := os.Getenv(s.env()); text != "" {
		v = value{text: text, source: s.env()}
	}
	if s.flag != "" {
		v = value{text: s.flag, source: "--" + strings.ReplaceAll(s.name, "_", "-")}
	}
	if v.source == "" {
		text, err := s.fallback(c)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		v = value{text: text, source: "default"}
	}
	if err := s.set(c, v); err != nil {
		switch {
		case v.source == "default":
			return fmt.Errorf("%s (the default): %w", s.name, err)
		case v.dir != "":
			return fmt.Errorf("%s: %s: %w", v.source, s.name, err)
		default:
			return fmt.Errorf("%s: %w", v.source, err)
		}
	}
	c.from[s.name] = v.source
	return nil
}

// TokensFile is where the digests of bearer tokens are kept.
func (c Config) TokensFile() string { return filepath.Join(c.DataDir, "tokens.json") }

// Describe lists each setting, its value and where that came from, one a line.
func (c Config) Describe() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range settings(Overrides{}) {
		text := s.get(c)
		if text == "" {
			text = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t(%s)\n", s.name, text, c.from[s.name])
	}
	_ = w.Flush()
	return b.String()
}
