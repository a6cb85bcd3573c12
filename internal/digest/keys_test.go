package digest_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/digest"
)

func openKeys(t *testing.T, path string) *digest.Keys {
	t.Helper()
	k, err := digest.OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func keyIDs(k *digest.Keys) (ids []string) {
	for _, key := range k.All() {
		ids = append(ids, key.ID)
	}
	return ids
}

func fingerprintUnder(t *testing.T, k digest.Key) string {
	t.Helper()
	d, err := k.Of(digest.Record{Actor: "token:a", Tool: "pay", Arguments: map[string]any{}}, []byte("{}"), "")
	if err != nil {
		t.Fatal(err)
	}
	if d.KeyID != k.ID {
		t.Errorf("the digests name the key %s, and were made with %s", d.KeyID, k.ID)
	}
	return d.Fingerprint
}

// FP-13: the first key is made once, is for its owner alone, and is the same after the next start.
func TestFirstKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	a, b := openKeys(t, path), openKeys(t, path)
	if len(a.All()) != 1 || fingerprintUnder(t, a.Current()) != fingerprintUnder(t, b.Current()) {
		t.Errorf("keys %v and %v", keyIDs(a), keyIDs(b))
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %04o, want 0600", info.Mode().Perm())
	}
	if other := openKeys(t, filepath.Join(t.TempDir(), "keys")); fingerprintUnder(t, other.Current()) == fingerprintUnder(t, a.Current()) {
		t.Error("two installations have one key")
	}
}

// FP-13: a new key comes first, the old ones stay and give the same fingerprints as before, also after a restart.
func TestRotationKeepsOldKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	k := openKeys(t, path)
	var ids, prints []string
	for range 3 {
		ids = append([]string{k.Current().ID}, ids...)
		prints = append([]string{fingerprintUnder(t, k.Current())}, prints...)
		if err := k.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	for _, keys := range []*digest.Keys{k, openKeys(t, path)} {
		if got := keyIDs(keys); len(got) != 4 || !slices.Equal(got[1:], ids) || slices.Contains(ids, got[0]) {
			t.Errorf("keys %v, want a new one before %v", got, ids)
		}
		for i, old := range keys.All()[1:] {
			if fingerprintUnder(t, old) != prints[i] {
				t.Errorf("the key %s gives another fingerprint now", old.ID)
			}
		}
	}
}

// FP-13: keys are dropped only when no open action uses them, and never the current one.
func TestRetirementKeepsWhatIsInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	k := openKeys(t, path)
	for range 2 {
		if err := k.Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	all := keyIDs(k)
	for _, c := range []struct {
		inUse, want []string
	}{
		{all, all}, {[]string{all[2], "fk_of_nobody"}, []string{all[0], all[2]}}, {nil, all[:1]}, {nil, all[:1]},
	} {
		if err := k.Retire(c.inUse); err != nil {
			t.Fatal(err)
		}
		if got, onDisk := keyIDs(k), keyIDs(openKeys(t, path)); !slices.Equal(got, c.want) || !slices.Equal(onDisk, c.want) {
			t.Errorf("with %v in use: %v, on the disk %v, want %v", c.inUse, got, onDisk, c.want)
		}
	}
}

// FP-13, FP-12: a damaged key file is refused, line by line, and not replaced: with another key, open actions would not be
// recognised. The refusal quotes nothing of the file.
func TestDamagedKeyFileIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	good := "fk_000000000001 " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	secret := base64.StdEncoding.EncodeToString([]byte("canary-canary-canary-canary-c"))
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"empty":               {"", 1},
		"blank":               {"\n\n", 1},
		"no key":              {"fk_000000000001\n", 1},
		"short key":           {"fk_000000000001 " + secret + "\n", 1},
		"not base64":          {"fk_000000000001 canary!!canary\n", 1},
		"other identifier":    {"key1 " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("c", 32))) + "\n", 1},
		"cut in the last one": {good + "\n" + good[:40], 2},
		"a line too many":     {good + "\n\n" + good + "\n", 2},
		"binary":              {"\x00\x01\x02", 1},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := digest.OpenKeys(path)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line %d", c.line)) {
			t.Errorf("%s: %v, want a refusal of line %d", name, err, c.line)
			continue
		}
		if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the refusal quotes the file: %v", name, err)
		}
		if left, err := os.ReadFile(path); err != nil || string(left) != c.text {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := digest.OpenKeys(t.TempDir()); err == nil {
		t.Error("a directory was taken for a key file")
	}
}

// FP-13: a key that cannot be written down is not used: fingerprints made with it would be lost with the process.
func TestKeyThatCannotBeWrittenIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "in", "keys")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	k := openKeys(t, path)
	before := keyIDs(k)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if err := k.Rotate(); err == nil {
		t.Error("a key was rotated without a place for it")
	}
	if got := keyIDs(k); !slices.Equal(got, before) {
		t.Errorf("keys %v, want %v as before", got, before)
	}
}

// FP-10, VA-08: keys do not print, however they are printed.
func TestKeysDoNotPrint(t *testing.T) {
	t.Parallel()
	secret := []byte("canary-canary-canary-canary-1234")
	key := keyOf(t, secret)
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(key.ID+" "+base64.StdEncoding.EncodeToString(secret)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := openKeys(t, path)
	var said strings.Builder
	for _, v := range []any{key, &key, []digest.Key{key}, map[string]digest.Key{"k": key}, struct{ K digest.Key }{key}, keys, *keys, keys.All()} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&said, verb+"\n", v)
		}
		text, _ := json.Marshal(v)
		said.Write(text)
		slog.New(slog.NewTextHandler(&said, nil)).Info("key", "key", v)
		slog.New(slog.NewJSONHandler(&said, nil)).Info("key", "key", v)
	}
	decimal := strings.Trim(strings.ReplaceAll(fmt.Sprint(secret[:8]), " ", ","), "[]")
	text := said.String()
	for form, value := range map[string]string{
		"raw": "canary-canary", "base64": base64.StdEncoding.EncodeToString(secret)[:16], "hex": hex.EncodeToString(secret)[:16],
		"upper hex": strings.ToUpper(hex.EncodeToString(secret))[:16], "decimal": decimal, "decimals": strings.ReplaceAll(decimal, ",", " "),
		"Go bytes": "0x63, 0x61, 0x6e, 0x61",
	} {
		if i := strings.Index(text, value); i >= 0 {
			t.Errorf("the key prints (%s): %q", form, text[max(0, i-80):min(len(text), i+40)])
		}
	}
}
