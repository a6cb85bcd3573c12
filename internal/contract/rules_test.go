package contract_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/contract"
)

// UN-07: each class with each method, and nothing of the class changes.
func TestMethodNeverDecidesTheClass(t *testing.T) {
	for _, class := range []string{"repeatable_with_key", "blocked_after_unknown"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			c := load(t, with(t, pay, "class: repeatable_with_key", "class: "+class, "method: POST", "method: "+method))
			if string(c.Class) != class || c.Method != method || !c.HasEffects {
				t.Errorf("%s as %s: got class %s", method, class, c.Class)
			}
		}
	}
	if c := load(t, with(t, readOnly(t), "method: GET", "method: POST")); c.HasEffects || c.Class != action.ReadOnly {
		t.Errorf("a POST declared as read: got class %s", c.Class)
	}
	effects := with(t, readOnly(t), "class: read_only", "class: blocked_after_unknown\n  attach_for: 1h") + "keep_result: 2h\n"
	if c := load(t, effects); !c.HasEffects {
		t.Error("a GET declared to have effects has none")
	}
}

func TestDefaultsOfAContract(t *testing.T) {
	c := load(t, pay)
	if c.MaxAttempts != 3 || c.Timeout != 30*time.Second || c.Scope != contract.ScopeRun || c.KeyOnly || c.EachUse ||
		c.ResponseLimit != 1<<20 || c.AttachFor != 15*time.Minute || c.KeepResult != 30*24*time.Hour {
		t.Errorf("got %+v", c)
	}
	if want := 24*time.Hour - 90*time.Second; c.KeyLife != want { // IK-15
		t.Errorf("got key life %s, want %s", c.KeyLife, want)
	}
	reads := load(t, readOnly(t))
	if reads.AttachFor != 0 || reads.KeyLife != 0 || reads.KeepResult != 24*time.Hour || reads.Key.Given() {
		t.Errorf("got %+v", reads)
	}
}

// case 112
func TestTimesAreKeptOrRefusedAndNeverMoved(t *testing.T) {
	for timeout, want := range map[string]time.Duration{"100ms": 100 * time.Millisecond, "10m": 10 * time.Minute, "1m30s": 90 * time.Second} {
		c := load(t, pay+"timeout: "+timeout+"\n")
		if op := operation(t, resolve(t, c, `{"invoice":"i","amount":1}`)); c.Timeout != want || op.Timeout != want.Milliseconds() {
			t.Errorf("%s: got %s and %d ms", timeout, c.Timeout, op.Timeout)
		}
	}
	for _, timeout := range []string{"0s", "-1s", "99ms", "10m1s", "1h", "0", "1.5s", "9999999999h"} {
		_, err := contract.Parse("a.yaml", []byte(pay+"timeout: \""+timeout+"\"\n"))
		if err == nil || !strings.Contains(err.Error(), "from 100ms to 10m") {
			t.Errorf("%s: got %v, want the allowed range", timeout, err)
		}
	}
}

func TestTheMarginMayGrow(t *testing.T) {
	c := load(t, with(t, pay, "  attach_for: 15m", "  attach_for: 15m\n  margin: 4h"))
	if want := 20 * time.Hour; c.KeyLife != want {
		t.Errorf("got key life %s, want %s", c.KeyLife, want)
	}
}

func TestSameToolInTwoFilesNamesBoth(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", pay)
	write(t, dir, "b.yml", "# another\n"+pay)
	write(t, dir, "notes.txt", "no contract")
	write(t, dir, ".hidden.yaml", "no: contract")
	_, err := contract.Load(dir)
	var faults contract.LoadErrors
	if !errors.As(err, &faults) || len(faults) != 1 {
		t.Fatalf("got %v", err)
	}
	if got, want := faults[0].Error(), "b.yml:2:1: /tool: the tool pay stands in a.yaml:1 already; give one of the two another name"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// API-09: an agent that asks how its action stands must never meet a contract's tool under that name.
func TestDeedsOwnToolNamesAreRefused(t *testing.T) {
	for _, name := range []string{action.ToolStatus, action.ToolWait} {
		dir := t.TempDir()
		write(t, dir, "a.yaml", with(t, pay, "tool: pay", "tool: "+name))
		_, err := contract.Load(dir)
		want := "a.yaml:1:1: /tool: the name " + name + " belongs to a tool of deed's own, which says how an action stands; give the tool another name"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestLoadNamesTheFaultsOfAllFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.yaml", with(t, pay, "${status == 201}", "${stat}"))
	write(t, dir, "a.yaml", with(t, pay, "method: POST", "method: post")+"attempts: 99\n")
	_, err := contract.Load(dir)
	var faults contract.LoadErrors
	if !errors.As(err, &faults) || len(faults) != 3 || faults[0].File != "a.yaml" || faults[2].File != "b.yaml" {
		t.Fatalf("got %v", err)
	}
	var one *contract.LoadError
	if !errors.As(err, &one) || one.Path != "/http/method" || one.Line != 11 || one.Column != 11 {
		t.Errorf("got %+v", one)
	}
	if _, err := contract.Load(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there was loaded")
	}
}

func TestToolsComeInTheOrderOfTheirNames(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "z.yaml", with(t, pay, "tool: pay", "tool: b")+"---\n# nothing here\n---\n"+with(t, pay, "tool: pay", "tool: a")+"...\n")
	write(t, dir, "a.json", string(load(t, with(t, pay, "tool: pay", "tool: c")).Source))
	set, err := contract.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range set.Tools() {
		names = append(names, c.Tool+" "+c.File)
	}
	if want := []string{"a z.yaml", "b z.yaml", "c a.json"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if c, ok := set.Tool("b"); !ok || c.Tool != "b" {
		t.Error("tool b is not found")
	}
	if _, ok := set.Tool("d"); ok {
		t.Error("tool d is found")
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDigestNamesTheMeaningOfTheSource(t *testing.T) {
	c := load(t, pay)
	for name, text := range map[string]string{
		"comment":  "# a comment\n" + pay + "# another\n",
		"spelling": with(t, pay, "json: {amount: \"${args.amount}\", note: \"${args.?note}\"}", "json:\n    note: '${args.?note}'\n    amount: ${args.amount}"),
		"order":    "keep_result: 30d\n" + with(t, pay, "keep_result: 30d\n", ""),
		"windows":  strings.ReplaceAll(pay, "\n", "\r\n"),
		"recorded": string(c.Source),
	} {
		if got := load(t, text).Digest; got != c.Digest {
			t.Errorf("%s: got %s, want %s", name, got, c.Digest)
		}
	}
	if load(t, pay+"attempts: 3\n").Digest == c.Digest {
		t.Error("a contract that says more has the same digest")
	}
}

// Recovery runs under the version of the contract that the action was made under.
func TestARecordedContractDoesTheSame(t *testing.T) {
	c := load(t, pay+"impact: |\n  Pays \"${args.amount}\".\n  It's final: ${'{'}\nmetadata: {json: /k}\n")
	again := load(t, string(c.Source))
	a, b := resolve(t, c, `{"invoice":"i","amount":1}`), resolve(t, again, `{"invoice":"i","amount":1}`)
	if !reflect.DeepEqual(operation(t, a), operation(t, b)) || a.Impact != b.Impact || again.Digest != c.Digest {
		t.Errorf("got %+v and %+v", operation(t, a), operation(t, b))
	}
}
