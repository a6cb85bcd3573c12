package sealed_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"deed.dev/deed/internal/sealed"
)

var place = sealed.Place{Kind: "answer", Owner: "result_1", Commitment: "sha256-salted:00", Lock: sealed.NewLock()}

func seal(t testing.TB, k *sealed.Keys, p sealed.Place, content []byte) []byte {
	t.Helper()
	value, err := k.Seal(p, content)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func make1(t *testing.T) *sealed.Keys {
	t.Helper()
	k, err := sealed.Make(filepath.Join(t.TempDir(), "content.keys"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func read(t *testing.T, path string) *sealed.Keys {
	t.Helper()
	k, err := sealed.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// AU-27: what was sealed comes back, empty content too, and nothing of it is in the sealed value. Equal contents have
// different values.
func TestContentComesBack(t *testing.T) {
	t.Parallel()
	k := make1(t)
	for _, content := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("canary "), 10_000)} {
		value := seal(t, k, place, content)
		if len(value) != len(content)+sealed.Overhead {
			t.Errorf("%d bytes are sealed as %d", len(content), len(value))
		}
		if bytes.Contains(value, []byte("canary")) {
			t.Error("the content stands in the sealed value")
		}
		if bytes.Equal(value, seal(t, k, place, content)) {
			t.Error("one content was sealed to one value twice")
		}
		got, err := read(t, k.Path()).Open(place, value)
		if err != nil || got == nil || !bytes.Equal(got, content) {
			t.Errorf("got %d bytes, %v; want %d", len(got), err, len(content))
		}
	}
}

// AU-27: a value opens in its own place alone. No two places are spelled alike.
func TestAValueOpensInItsPlaceAlone(t *testing.T) {
	t.Parallel()
	k := make1(t)
	value := seal(t, k, place, []byte("content"))
	zero := make([]byte, sealed.LockBytes)
	for _, lock := range [][]byte{nil, {}, zero, sealed.NewLock(), place.Lock[:31], append(bytes.Clone(place.Lock), 0)} {
		other := place
		if other.Lock = lock; bytes.Equal(lock, place.Lock) {
			t.Fatal("a lock came twice")
		}
		if got, err := k.Open(other, value); !errors.Is(err, sealed.ErrDamaged) || got != nil {
			t.Errorf("with the lock %x: %q, %v", lock, got, err)
		}
		if len(lock) != sealed.LockBytes {
			if value, err := k.Seal(other, nil); err == nil {
				t.Errorf("sealed with the lock %x: %x", lock, value)
			}
		}
	}
	for _, other := range []sealed.Place{
		{}, {Kind: "headers", Owner: place.Owner, Commitment: place.Commitment}, {Kind: place.Kind, Owner: "result_2", Commitment: place.Commitment},
		{Kind: place.Kind, Owner: place.Owner, Commitment: "sha256-salted:01"}, {Kind: place.Kind, Owner: place.Owner},
		{Kind: "answe", Owner: "rresult_1", Commitment: place.Commitment}, {Kind: "answerresult_1", Owner: "", Commitment: place.Commitment},
		{Kind: place.Owner, Owner: place.Kind, Commitment: place.Commitment},
	} {
		other.Lock = place.Lock
		if got, err := k.Open(other, value); !errors.Is(err, sealed.ErrDamaged) || got != nil {
			t.Errorf("in %+v: %q, %v", other, got, err)
		}
	}
}

// AU-27: whatever byte of a value is changed, and wherever it is cut, nothing of it opens.
func TestAChangedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	k := make1(t)
	value := seal(t, k, place, []byte("content"))
	for i := range value {
		changed := bytes.Clone(value)
		changed[i] ^= 1
		got, err := k.Open(place, changed)
		wrongKey := i >= 1 && i < 9
		if got != nil || errors.Is(err, sealed.ErrNoKey) != wrongKey || errors.Is(err, sealed.ErrDamaged) == wrongKey {
			t.Errorf("byte %d changed: %q, %v", i, got, err)
		}
		if got, err := k.Open(place, value[:i]); !errors.Is(err, sealed.ErrDamaged) || got != nil {
			t.Errorf("cut at %d: %q, %v", i, got, err)
		}
	}
	if got, err := k.Open(place, append(bytes.Clone(value), 0)); !errors.Is(err, sealed.ErrDamaged) || got != nil {
		t.Errorf("a byte too many: %q, %v", got, err)
	}
}

// AU-27: another installation's key opens nothing, and the error names the key that is wanted.
func TestAnotherKeyOpensNothing(t *testing.T) {
	t.Parallel()
	k := make1(t)
	got, err := make1(t).Open(place, seal(t, k, place, []byte("content")))
	if !errors.Is(err, sealed.ErrNoKey) || got != nil || !strings.Contains(err.Error(), k.Current().ID()) {
		t.Errorf("%q, %v; want that the key %s is not there", got, err, k.Current().ID())
	}
}

// AU-27: a new key seals from now on, and older ones still open what they sealed, also after a restart. A retired one opens
// nothing more.
func TestRotation(t *testing.T) {
	t.Parallel()
	k := make1(t)
	var values [][]byte
	var ids []string
	for i := range 3 {
		if i > 0 {
			if err := k.Rotate(); err != nil {
				t.Fatal(err)
			}
		}
		values, ids = append(values, seal(t, k, place, []byte{byte(i)})), append([]string{k.Current().ID()}, ids...)
	}
	for _, keys := range []*sealed.Keys{k, read(t, k.Path())} {
		if !slices.Equal(keys.IDs(), ids) || keys.Current().ID() != ids[0] {
			t.Errorf("keys %v, want %v", keys.IDs(), ids)
		}
		for i, value := range values {
			if got, err := keys.Open(place, value); err != nil || !bytes.Equal(got, []byte{byte(i)}) {
				t.Errorf("value %d: %v, %v", i, got, err)
			}
		}
	}
	if err := k.Retire([]string{ids[2]}); err != nil {
		t.Fatal(err)
	}
	for _, keys := range []*sealed.Keys{k, read(t, k.Path())} {
		if want := []string{ids[0], ids[2]}; !slices.Equal(keys.IDs(), want) {
			t.Errorf("keys %v, want %v", keys.IDs(), want)
		}
		if _, err := keys.Open(place, values[1]); !errors.Is(err, sealed.ErrNoKey) {
			t.Errorf("after its key was retired: %v", err)
		}
	}
}

func TestAKeyFileIsMadeOnceAndForItsOwner(t *testing.T) {
	t.Parallel()
	k := make1(t)
	info, err := os.Stat(k.Path())
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %04o", info.Mode().Perm())
	}
	before, _ := os.ReadFile(k.Path())
	if _, err := sealed.Make(k.Path()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second file was made: %v", err)
	}
	if after, _ := os.ReadFile(k.Path()); !bytes.Equal(before, after) {
		t.Error("the file was replaced")
	}
	if _, err := sealed.Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o622} {
		if err := os.Chmod(k.Path(), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := sealed.Read(k.Path()); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

// A damaged key file is refused with the line and left as it is, and the refusal quotes nothing of it.
func TestADamagedKeyFileIsRefused(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(make1(t).Path())
	if err != nil {
		t.Fatal(err)
	}
	id, value, _ := strings.Cut(strings.TrimSpace(string(good)), " ")
	other, _ := os.ReadFile(make1(t).Path())
	otherID, _, _ := strings.Cut(string(other), " ")
	flipped := []byte(value)
	flipped[3] = map[bool]byte{true: 'B', false: 'A'}[flipped[3] == 'A']
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"empty": {"", 1}, "no key": {id + "\n", 1}, "cut in the second": {string(good) + string(good[:30]), 2},
		"short": {id + " " + base64.StdEncoding.EncodeToString([]byte("canary")), 1}, "not base64": {id + " canary!\n", 1},
		"another's identifier": {otherID + " " + value, 1}, "a changed key": {id + " " + string(flipped), 1}, "binary": {"\x00\xff", 1},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := sealed.Read(path)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("line %d", c.line)) {
			t.Errorf("%s: %v, want a refusal of line %d", name, err, c.line)
			continue
		}
		if strings.Contains(err.Error(), value[:10]) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the refusal quotes the file: %v", name, err)
		}
		if left, _ := os.ReadFile(path); string(left) != c.text {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// A key that cannot be written down seals nothing.
func TestAKeyThatCannotBeWrittenIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "in")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k, err := sealed.Make(filepath.Join(dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	before := k.IDs()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := k.Rotate(); err == nil || !slices.Equal(k.IDs(), before) {
		t.Errorf("rotated without a place for the key: %v, keys %v, before %v", err, k.IDs(), before)
	}
}

// VA-08: keys do not print, however they are printed.
func TestKeysDoNotPrint(t *testing.T) {
	t.Parallel()
	keys := make1(t)
	file, err := os.ReadFile(keys.Path())
	if err != nil {
		t.Fatal(err)
	}
	_, encoded, _ := strings.Cut(strings.TrimSpace(string(file)), " ")
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	key := keys.Current()
	var said strings.Builder
	for _, v := range []any{key, *key, []*sealed.Key{key}, []sealed.Key{*key}, map[string]sealed.Key{"k": *key}, struct{ K sealed.Key }{*key}, keys} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&said, verb+"\n", v)
		}
		text, _ := json.Marshal(v)
		said.Write(text)
		slog.New(slog.NewTextHandler(&said, nil)).Info("key", "key", v)
		slog.New(slog.NewJSONHandler(&said, nil)).Info("key", "key", v)
	}
	decimal := strings.Trim(fmt.Sprint(secret[:6]), "[]")
	for form, value := range map[string]string{
		"base64": encoded[:12], "hex": hex.EncodeToString(secret[:8]), "upper hex": strings.ToUpper(hex.EncodeToString(secret[:8])),
		"decimals": decimal, "decimals with commas": strings.ReplaceAll(decimal, " ", ","),
	} {
		if strings.Contains(said.String(), value) {
			t.Errorf("the key prints (%s)", form)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k, err := sealed.Make(filepath.Join(f.TempDir(), "keys"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seal(f, k, place, []byte("content")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		if got, err := k.Open(sealed.Place{Kind: "another", Lock: place.Lock}, value); err == nil || got != nil {
			t.Errorf("%x opened as %q", value, got)
		}
	})
}

func BenchmarkSealAndOpen(b *testing.B) {
	k, err := sealed.Make(filepath.Join(b.TempDir(), "keys"))
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{400, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			content := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, err := k.Open(place, seal(b, k, place, content)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
