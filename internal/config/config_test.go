package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// home gives the test a home directory of its own and an environment without any of deed's variables.
func home(t *testing.T) string {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "DEED_") || strings.HasPrefix(name, "XDG_") {
			t.Setenv(name, "")
		}
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	return dir
}

func writeFile(t *testing.T, home, text string) string {
	t.Helper()
	path := filepath.Join(home, ".config", "deed", "deed.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	dir := home(t)
	got, err := Load(Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	got.from = nil
	want := Config{
		ConfigDir:   filepath.Join(dir, ".config/deed"),
		DataDir:     filepath.Join(dir, ".local/state/deed"),
		KeyDir:      filepath.Join(dir, ".local/state/deed/keys"),
		Contracts:   filepath.Join(dir, ".config/deed/contracts"),
		Credentials: filepath.Join(dir, ".config/deed/credentials.yaml"),
		Approvers:   filepath.Join(dir, ".config/deed/approvers.yaml"),
		Socket:      filepath.Join(dir, ".local/state/deed/deed.sock"),
		Operator:    filepath.Join(dir, ".local/state/deed/operator.sock"),
		Listen:      "127.0.0.1:7333",
		LongestRun:  24 * time.Hour,
		Wait:        45 * time.Second,
		LogLevel:    slog.LevelInfo,
		Vault:       filepath.Join(dir, ".local/state/deed/vault.age"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Load() =\n%+v, want\n%+v", got, want)
	}
}

func TestDefaultsFollowXDG(t *testing.T) {
	home(t)
	t.Setenv("XDG_CONFIG_HOME", "/c")
	t.Setenv("XDG_STATE_HOME", "/s")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	c, err := Load(Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.ConfigDir, c.DataDir, c.Socket, c.Operator, c.Contracts, c.TokensFile()}
	want := []string{"/c/deed", "/s/deed", "/run/user/1000/deed/deed.sock", "/run/user/1000/deed/operator.sock", "/c/deed/contracts", "/s/deed/tokens.json"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("paths are %v, want %v", got, want)
	}
	t.Setenv("XDG_RUNTIME_DIR", "relative") // to be ignored, says the specification
	if c, err = Load(Overrides{}); err != nil || c.Socket != "/s/deed/deed.sock" {
		t.Errorf("with a relative XDG_RUNTIME_DIR: socket %q, error %v, want /s/deed/deed.sock", c.Socket, err)
	}
}

func TestStrongerSourceWins(t *testing.T) {
	dir := home(t)
	path := writeFile(t, dir, "# comment\nwait: 10s\nlog_level: warn\nlisten: 127.0.0.1:1\ncontracts: tools\ndata_dir: ~/state\norigin: deed.example/prod\n")
	t.Setenv("DEED_LOG_LEVEL", "debug")
	t.Setenv("DEED_LISTEN", "127.0.0.1:2")
	c, err := Load(Overrides{Listen: "[::1]:3"})
	if err != nil {
		t.Fatal(err)
	}
	want := "config_dir   " + dir + "/.config/deed                   (default)\n" +
		"data_dir     " + dir + "/state                          (" + path + ":6)\n" +
		"key_dir      " + dir + "/state/keys                     (default)\n" +
		"contracts    " + dir + "/.config/deed/tools             (" + path + ":5)\n" +
		"credentials  " + dir + "/.config/deed/credentials.yaml  (default)\n" +
		"approvers    " + dir + "/.config/deed/approvers.yaml    (default)\n" +
		"authorize_runs policy                                   (default)\n" +
		"socket       " + dir + "/state/deed.sock                (default)\n" +
		"operator_socket " + dir + "/state/operator.sock         (default)\n" +
		"listen       [::1]:3 (--listen)\n" +
		"longest_run  24h0m0s (default)\n" +
		"wait         10s (" + path + ":2)\n" +
		"log_level    debug (DEED_LOG_LEVEL)\n" +
		"origin       deed.example/prod (" + path + ":7)\n" +
		"vault        " + dir + "/state/vault.age                (default)\n" +
		"vault_identity - (default)\n" +
		"vault_passphrase_file - (default)\n" +
		"tls_roots    - (default)\n"
	squeeze := func(s string) string { return regexp.MustCompile(` +`).ReplaceAllString(s, " ") }
	if got := c.Describe(); squeeze(got) != squeeze(want) {
		t.Errorf("Describe() =\n%s, want\n%s", got, want)
	}
}

func TestConfigDirMovesTheFile(t *testing.T) {
	home(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "deed.yaml"), []byte("wait: 7s"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Overrides{ConfigDir: dir})
	if err != nil || c.Wait != 7*time.Second {
		t.Errorf("wait %v, error %v, want 7s from the file in the given directory", c.Wait, err)
	}
}

func TestListen(t *testing.T) {
	home(t)
	for text, want := range map[string]string{
		"127.0.0.1:7333":        "127.0.0.1:7333",
		"127.9.9.9:1":           "127.9.9.9:1",
		"[::1]:7333":            "[::1]:7333",
		"[::ffff:127.0.0.1]:80": "[::ffff:127.0.0.1]:80",
		"localhost:7333":        "127.0.0.1:7333",
		"127.0.0.1:0":           "127.0.0.1:0",
		"off":                   "",
	} {
		c, err := Load(Overrides{Listen: text})
		if err != nil || c.Listen != want {
			t.Errorf("listen %q gives %q, error %v, want %q", text, c.Listen, err, want)
		}
	}
	for _, text := range []string{
		":7333", "0.0.0.0:7333", "[::]:7333", "192.168.0.7:7333", "[fe80::1%lo]:7333", "[::ffff:10.0.0.1]:80", "[::1%lo]:1",
		"example.com:7333", "localhost", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000", "127.0.0.1:-1", "localhost.:1",
		"LOCALHOST:1", "127.1:80", "2130706433:80",
	} {
		if c, err := Load(Overrides{Listen: text}); err == nil {
			t.Errorf("listen %q was accepted as %q", text, c.Listen)
		} else if !strings.Contains(err.Error(), "127.0.0.1:") {
			t.Errorf("listen %q: the error does not say what to write: %v", text, err)
		}
	}
}

// Every refusal says where the mistake stands and what to write instead.
func TestMistakesInTheFile(t *testing.T) {
	for _, c := range []struct{ name, text, where, instead string }{
		{"unknown setting", "wait: 5s\nlisen: 127.0.0.1:1\n", ":2: ", "write one of data_dir, key_dir, contracts,"},
		// RM-17: no setting could give every identity or result one lifetime.
		{"global lifetime", "ttl: 24h\n", ":1: ", "write one of"},
		{"config_dir in itself", "config_dir: /x\n", ":1: ", "write one of"},
		{"twice", "wait: 5s\nwait: 6s\n", ":2: ", "write one setting a line"},
		{"no unit", "\n\nwait: 45\n", ":3: wait: ", "such as 45s"},
		{"too long", "wait: 56s\n", ":1: wait: ", "up to 55s"},
		{"no longest run", "longest_run: 0s\n", ":1: longest_run: ", "such as 24h"},
		{"zero", "wait: 0s\n", ":1: wait: ", "above 0s"},
		{"negative", "wait: -1s\n", ":1: wait: ", "above 0s"},
		{"who authorizes runs", "authorize_runs: nobody\n", ":1: authorize_runs: ", "policy or person"},
		{"log level", "log_level: verbose\n", ":1: log_level: ", "debug, info, warn or error"},
		{"all networks", "listen: 0.0.0.0:7333\n", ":1: listen: ", "127.0.0.1:7333"},
		{"list", "listen: [a, b]\n", ":1: ", "write one value"},
		{"nothing", "listen:\n", ":1: ", "leave the setting out"},
		{"alias", "listen: &a x\nsocket: *a\n", ":1: ", "write one value"},
		{"merge", "<<: {a: b}\n", ":1: ", "write one of"},
		{"not a mapping", "- listen\n", ":1: ", "write lines such as"},
		{"two documents", "wait: 5s\n---\nwait: 6s\n", ":3: ", "write all settings in one"},
		{"broken", "wait: [1\n", ":1: ", "write one setting a line"},
		{"origin with spaces", "origin: a b\n", ":1: origin: ", "without spaces"},
		{"empty origin", "origin: ''\n", ":1: origin: ", "without spaces"},
		{"roots missing", "tls_roots: nowhere.pem\n", ":1: tls_roots: ", "PEM file"},
		{"roots not PEM", "tls_roots: deed.yaml\n", ":1: tls_roots: ", "PEM file"},
		{"blank path", "data_dir: '  '\n", ":1: data_dir: ", "write one"},
		{"zero byte", "data_dir: \"a\\0b\"\n", ":1: data_dir: ", "write one"},
		{"one socket for both", "socket: s\noperator_socket: s\n", ":2: operator_socket: ", "write another path"},
		{"long operator socket", "operator_socket: /" + strings.Repeat("x", 200) + "\n", ":1: operator_socket: ", "write a shorter one"},
		{"huge", "wait: 5s #" + strings.Repeat("x", maxFile), " is larger", "write settings only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := writeFile(t, home(t), c.text)
			_, err := Load(Overrides{})
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.HasPrefix(err.Error(), path+c.where) || !strings.Contains(err.Error(), c.instead) {
				t.Errorf("error is %q, want it to begin with %q and to say %q", err, path+c.where, c.instead)
			}
		})
	}
}

func TestMistakesElsewhereNameTheirPlace(t *testing.T) {
	home(t)
	if _, err := Load(Overrides{LogLevel: "x"}); err == nil || !strings.HasPrefix(err.Error(), "--log-level: ") {
		t.Errorf("flag: error is %v", err)
	}
	t.Setenv("DEED_WAIT", "x")
	if _, err := Load(Overrides{}); err == nil || !strings.HasPrefix(err.Error(), "DEED_WAIT: ") {
		t.Errorf("environment: error is %v", err)
	}
	t.Setenv("DEED_WAIT", "")
	t.Setenv("XDG_RUNTIME_DIR", "/"+strings.Repeat("x", 200))
	if _, err := Load(Overrides{}); err == nil || !strings.Contains(err.Error(), "socket (the default): ") || !strings.Contains(err.Error(), "write a shorter one") {
		t.Errorf("long socket path: error is %v", err)
	}
	t.Setenv("HOME", "")
	if _, err := Load(Overrides{}); err == nil || !strings.Contains(err.Error(), "set HOME or DEED_CONFIG_DIR") {
		t.Errorf("without a home: error is %v", err)
	}
}

// RM-17: a lifetime that holds for everything cannot even be written down.
func TestNoSettingIsALifetime(t *testing.T) {
	for f := range reflect.TypeFor[Config]().Fields() {
		if regexp.MustCompile(`(?i)ttl|attach|retention|keep|expire|lifetime`).MatchString(f.Name) {
			t.Errorf("Config.%s looks like one lifetime for everything", f.Name)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("wait: 5s\n")
	f.Add("<<: [*a, {b: !!x c}]\n--- |\n  \t")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "deed.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = readFile(path, settings(Overrides{}))
	})
}
