package identity

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func openTokens(t *testing.T, path string) *Tokens {
	t.Helper()
	tokens, err := OpenTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func create(t *testing.T, tokens *Tokens, name string, o TokenOptions) string {
	t.Helper()
	token, err := tokens.Create(name, o, noon)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// checkNobody wants a refusal for the reason given, without the token in it.
func checkNobody(t *testing.T, tokens *Tokens, bearer string, now time.Time, why error) {
	t.Helper()
	actor, err := tokens.Authenticate(bearer, now)
	var refusal *action.Error
	if !errors.As(err, &refusal) || refusal.Code != action.CodeUnauthenticated || !errors.Is(err, why) {
		t.Errorf("Authenticate gives error %v, want %s because %v", err, action.CodeUnauthenticated, why)
	}
	if actor != (action.Actor{}) || actor.Verified() {
		t.Errorf("a refused token gives the actor %+v", actor)
	}
	if err != nil && len(bearer) > 12 && strings.Contains(err.Error(), bearer[:12]) {
		t.Errorf("the error holds the token: %v", err)
	}
}

func TestTokenNamesItsHolder(t *testing.T) {
	tokens := openTokens(t, filepath.Join(t.TempDir(), "data", "tokens.json"))
	shared := create(t, tokens, "ci", TokenOptions{})
	sole := create(t, tokens, "agent-7.a_b", TokenOptions{Sole: true})
	for token, want := range map[string]action.Actor{
		shared: {Kind: "token", Identity: "ci", Strength: action.StrengthToken, Shared: true},
		sole:   {Kind: "token", Identity: "agent-7.a_b", Strength: action.StrengthToken},
	} {
		if got, err := tokens.Authenticate(token, noon); err != nil || got != want {
			t.Errorf("Authenticate = %+v, error %v, want %+v", got, err, want)
		}
		if !regexp.MustCompile(`^deed_[A-Za-z0-9_-]{49}$`).MatchString(token) {
			t.Errorf("the token has the form %q", token)
		}
	}
}

func TestTokensThatDoNotCount(t *testing.T) {
	tokens := openTokens(t, filepath.Join(t.TempDir(), "tokens.json"))
	token := create(t, tokens, "short", TokenOptions{Lifetime: time.Hour})
	if _, err := tokens.Authenticate(token, noon.Add(time.Hour-1)); err != nil {
		t.Errorf("just before its end: %v", err)
	}
	checkNobody(t, tokens, token, noon.Add(time.Hour), ErrTokenExpired)

	token = create(t, tokens, "lost", TokenOptions{})
	for range 2 {
		if err := tokens.Revoke("lost", noon); err != nil {
			t.Fatal(err)
		}
		checkNobody(t, tokens, token, noon, ErrTokenRevoked)
	}
	other := newToken()
	for _, bearer := range []string{
		other, "", "deed_", "Bearer " + other, other + "x", other[:53], other[:20] + "!" + other[21:], strings.ToUpper(other),
		"short", digestOfToken(token), strings.Repeat("deed_", 1<<16), "deed_" + strings.Repeat("\x00", 49), "\xff\xfe",
	} {
		checkNobody(t, tokens, bearer, noon, ErrTokenUnknown)
	}
	if err := tokens.Revoke("nobody", noon); !errors.Is(err, ErrNoSuchToken) {
		t.Errorf("revoking a token that does not exist gives %v", err)
	}
}

// Giving out a new token for a name ends the old one and keeps the actor.
func TestNameIsUsedByOneTokenAtATime(t *testing.T) {
	tokens := openTokens(t, filepath.Join(t.TempDir(), "tokens.json"))
	first := create(t, tokens, "a", TokenOptions{Lifetime: time.Hour})
	if _, err := tokens.Create("a", TokenOptions{}, noon); !errors.Is(err, ErrNameTaken) {
		t.Errorf("a second token of the name gives error %v, want %v", err, ErrNameTaken)
	}
	second, err := tokens.Create("a", TokenOptions{}, noon.Add(time.Hour))
	if err != nil {
		t.Fatalf("after the first has expired: %v", err)
	}
	checkNobody(t, tokens, first, noon, ErrTokenUnknown)
	if actor, err := tokens.Authenticate(second, noon); err != nil || actor.Identity != "a" {
		t.Errorf("the second token gives %+v, error %v", actor, err)
	}
}

func TestTokenNames(t *testing.T) {
	tokens := openTokens(t, filepath.Join(t.TempDir(), "tokens.json"))
	for _, name := range []string{"", "A", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "a\x00", strings.Repeat("a", 65)} {
		if _, err := tokens.Create(name, TokenOptions{}, noon); !errors.Is(err, ErrNameInvalid) {
			t.Errorf("the name %q gives error %v, want %v", name, err, ErrNameInvalid)
		}
	}
	for _, name := range []string{"a", "0", "a.b-c_d", strings.Repeat("a", 64)} {
		create(t, tokens, name, TokenOptions{})
	}
	if _, err := tokens.Create("negative", TokenOptions{Lifetime: -1}, noon); err == nil {
		t.Error("a negative lifetime was accepted")
	}
}

// The file holds digests only, and nobody else may read it.
func TestTokenIsNotKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tokens.json")
	tokens := openTokens(t, path)
	token := create(t, tokens, "ci", TokenOptions{Sole: true, Lifetime: time.Hour})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"format\": \"deed-tokens/1\",\n  \"tokens\": [\n    {\n      \"name\": \"ci\",\n      \"sha256\": \"" + digestOfToken(token) +
		"\",\n      \"created\": \"2026-03-01T12:00:00Z\",\n      \"expires\": \"2026-03-01T13:00:00Z\",\n      \"sole\": true\n    }\n  ]\n}\n"
	if string(text) != want {
		t.Errorf("the file holds\n%s, want\n%s", text, want)
	}
	list, err := tokens.List()
	if wantInfo := (TokenInfo{"ci", digestOfToken(token), noon, noon.Add(time.Hour), time.Time{}, true}); err != nil || !reflect.DeepEqual(list, []TokenInfo{wantInfo}) {
		t.Errorf("List = %+v, error %v, want %+v", list, err, wantInfo)
	}
	if info, err := os.Stat(path); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o600) {
		t.Errorf("the file has mode %v, error %v, want 0600", info.Mode(), err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if want := []string{path, path + ".lock"}; !reflect.DeepEqual(left, want) {
		t.Errorf("the directory holds %v, want %v", left, want)
	}
}

// What another process does to the file counts at the next call, also within one step of the file system's clock.
func TestTwoProcessesShareTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	daemon, command := openTokens(t, path), openTokens(t, path)
	for range 50 {
		token := create(t, command, "ci", TokenOptions{})
		if _, err := daemon.Authenticate(token, noon); err != nil {
			t.Fatalf("a new token: %v", err)
		}
		if err := command.Revoke("ci", noon); err != nil {
			t.Fatal(err)
		}
		checkNobody(t, daemon, token, noon, ErrTokenRevoked)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	checkNobody(t, daemon, newToken(), noon, ErrTokenUnknown)
	if list, err := daemon.List(); err != nil || len(list) != 0 {
		t.Errorf("without a file List = %v, error %v, want none", list, err)
	}
}

// File times advance in steps, so a file that changed a moment ago may change again without showing it.
func TestFreshFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	create(t, openTokens(t, path), "ci", TokenOptions{})
	daemon := openTokens(t, path)
	first := daemon.loaded.info
	if _, err := daemon.List(); err != nil || daemon.loaded.info == first {
		t.Errorf("a file that changed a moment ago was not read again, error %v", err)
	}
}

// A file that has been left alone is not read again, and is as soon as it changes.
func TestUnchangedFileIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	token := create(t, openTokens(t, path), "ci", TokenOptions{})
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, long, long); err != nil {
		t.Fatal(err)
	}
	daemon := openTokens(t, path)
	first := daemon.loaded.info
	if _, err := daemon.Authenticate(token, noon); err != nil || daemon.loaded.info != first {
		t.Errorf("an unchanged file was read again, error %v", err)
	}
	if err := openTokens(t, path).Revoke("ci", noon); err != nil {
		t.Fatal(err)
	}
	checkNobody(t, daemon, token, noon, ErrTokenRevoked)
}

func TestNoChangeIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var work sync.WaitGroup
	for _, name := range strings.Split("abcdefghijklmnop", "") {
		work.Go(func() {
			tokens, err := OpenTokens(path)
			if err == nil {
				_, err = tokens.Create(name, TokenOptions{}, noon)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if list, err := openTokens(t, path).List(); err != nil || len(list) != 16 {
		t.Errorf("after 16 changes at once there are %d tokens, error %v", len(list), err)
	}
}

// A file that cannot be trusted lets nobody in, and a daemon does not start with it.
func TestUntrustworthyFileLetsNobodyIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	tokens := openTokens(t, path)
	token := create(t, tokens, "ci", TokenOptions{})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":         "",
		"cut off":       string(good[:len(good)/2]),
		"later format":  strings.Replace(string(good), "tokens/1", "tokens/2", 1),
		"name":          strings.Replace(string(good), `"ci"`, `"../ci"`, 1),
		"digest":        strings.Replace(string(good), digestOfToken(token), "00", 1),
		"no digest":     strings.Replace(string(good), digestOfToken(token), "", 1),
		"not an object": "[]",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTokens(path); err == nil {
			t.Errorf("%s: it was opened", name)
		}
		if actor, err := tokens.Authenticate(token, noon); err == nil {
			t.Errorf("%s: it let %+v in", name, actor)
		}
		if _, err := tokens.Create("other", TokenOptions{}, noon); err == nil {
			t.Errorf("%s: it was written over", name)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may read gives error %v", err)
	}
}

func TestBearer(t *testing.T) {
	for _, values := range [][]string{{"Bearer deed_x"}, {"bearer deed_x"}, {"BEARER  deed_x "}} {
		if got, err := Bearer(http.Header{"Authorization": values}); err != nil || got != "deed_x" {
			t.Errorf("Bearer(%q) = %q, error %v, want deed_x", values, got, err)
		}
	}
	for _, values := range [][]string{nil, {""}, {"Bearer"}, {"Bearer "}, {"Basic deed_x"}, {"deed_x"}, {"Bearerdeed_x"}, {"Bearer deed_x", "Bearer deed_x"}} {
		got, err := Bearer(http.Header{"Authorization": values})
		var refusal *action.Error
		if !errors.As(err, &refusal) || refusal.Code != action.CodeUnauthenticated || !errors.Is(err, ErrNoBearer) || got != "" {
			t.Errorf("Bearer(%q) = %q, error %v, want %v", values, got, err, ErrNoBearer)
		}
	}
}
