package places_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/anchor/anchortest"
	"deed.dev/deed/internal/anchor/places"
	"deed.dev/deed/journal"
)

// AU-10: a file that only grows. Torn entries, older ones added later and foreign text hide nothing; the file is never made,
// cut or written anew.
func TestTheFileOnlyGrows(t *testing.T) {
	l := anchortest.New(t, 900)
	keys := []journal.Key{l.Signer.Key()}
	path := filepath.Join(t.TempDir(), "checkpoints")
	if _, err := places.NewFile("f", path, keys).Keep(t.Context(), l.MustHead(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	first := l.MustHead(t)
	p := places.NewFile("f", path, keys)
	keep(t, p, first)
	l.Add(50)
	newest := l.MustHead(t)
	keep(t, p, newest)
	keep(t, p, newest)
	before, err := os.ReadFile(path)
	if err != nil || strings.Count(string(before), "\ncheckpoint ") != 2 {
		t.Fatalf("the file is %q, %v; want two entries", before, err)
	}
	for what, text := range map[string]string{
		"torn in its first line":     "\ncheckpo",
		"torn in the note":           fmt.Sprintf("\ncheckpoint 960 %d\n%s", len(newest.Signed), newest.Signed[:40]),
		"an older one once more":     fmt.Sprintf("\ncheckpoint 900 %d\n%s", len(first.Signed), first.Signed),
		"a length that is made up":   "\ncheckpoint 960 32000\n",
		"a size that is made up":     fmt.Sprintf("\ncheckpoint 9000 %d\n%s", len(first.Signed), first.Signed),
		"foreign text, with no end":  "\nhello\n" + strings.Repeat("x", 200<<10),
		"a length below nothing":     "\ncheckpoint 960 -5\n",
		"a number that is too large": "\ncheckpoint 99999999999999999999999 10\n",
	} {
		add(text)
		var conflict *anchor.ConflictError
		if err := places.NewFile("f", path, keys).Check(t.Context(), l.Fork(940, 0).MustHead(t)); !errors.As(err, &conflict) || conflict.Held != 950 {
			t.Errorf("%s: a journal of 940 gets %v, want a conflict at 950", what, err)
		}
		if err := places.NewFile("f", path, keys).Check(t.Context(), l.MustHead(t)); err != nil {
			t.Errorf("%s: the whole journal gets %v", what, err)
		}
	}
	l.Add(1)
	keep(t, p, l.MustHead(t)) // after what was torn
	var conflict *anchor.ConflictError
	if err := places.NewFile("f", path, keys).Check(t.Context(), l.Fork(950, 0).MustHead(t)); !errors.As(err, &conflict) || conflict.Held != 951 {
		t.Errorf("what comes after torn entries is not found: %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(after), string(before)) {
		t.Errorf("what stood there has changed: %v", err)
	}
	forged := anchortest.New(t, 2000)
	add(fmt.Sprintf("\ncheckpoint 2000 %d\n%s", len(forged.MustHead(t).Signed), forged.MustHead(t).Signed))
	if err := places.NewFile("f", path, keys).Check(t.Context(), l.MustHead(t)); err == nil || errors.As(err, &conflict) && conflict.Held == 2000 {
		t.Errorf("a checkpoint of another key: %v, want an error that is no conflict", err)
	}
}
