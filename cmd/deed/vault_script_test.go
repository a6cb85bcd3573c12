package main

import (
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// sealcredentials makes the provider's credential one whose value is in the vault. Arguments are further lines of the entry.
func scriptSealCredentials(ts *testscript.TestScript, _ bool, args []string) {
	host := strings.TrimPrefix(ts.Getenv("PROVIDER"), "http://")
	text := "credentials:\n  - ref: provider\n    kind: bearer\n    hosts: ['" + host + "']\n    insecure_loopback: true\n    vault: true\n"
	for _, line := range args {
		text += "    " + line + "\n"
	}
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("CONFIG"), "credentials.yaml"), []byte(text), 0o600))
}

// nowhere SECRET DIR... fails when a file below the directories holds the secret, plain, in hex or in base64.
func scriptNowhere(ts *testscript.TestScript, _ bool, args []string) {
	secret := args[0]
	forms := []string{secret, hex.EncodeToString([]byte(secret))}
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		forms = append(forms, strings.TrimRight(text, "=")[4:len(text)-5])
	}
	searched := 0
	for _, dir := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			searched++
			for _, form := range forms {
				if strings.Contains(string(data), form) {
					ts.Fatalf("%s holds the secret as %q", path, form)
				}
			}
			return nil
		}))
	}
	if searched == 0 {
		ts.Fatalf("nothing was searched")
	}
}

// sent VALUE compares the Authorization of the newest request that the provider saw.
func scriptSent(ts *testscript.TestScript, _ bool, args []string) {
	seen := stageOf(ts).Requests()
	if got := seen[len(seen)-1].Values("Authorization"); len(got) != 1 || got[0] != args[0] {
		ts.Fatalf("the newest request came with %q, want %q", got, args[0])
	}
}

// sentbody TEXT looks for a text in the body of the newest request that the provider saw.
func scriptSentBody(ts *testscript.TestScript, _ bool, args []string) {
	seen := stageOf(ts).Requests()
	if body := seen[len(seen)-1].Body; !strings.Contains(body, args[0]) {
		ts.Fatalf("the newest request came with %s, want %s in it", body, args[0])
	}
}

// putcontract FILE adds a contract whose PROVIDER is the one of the stage.
func scriptPutContract(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "PROVIDER", ts.Getenv("PROVIDER"))
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("CONFIG"), "contracts", args[0]), []byte(text), 0o600))
}
