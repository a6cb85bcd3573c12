package gateway_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"regexp"
	"testing"
)

var httpHex = regexp.MustCompile(`[0-9a-f]{40,128}`)

// httpGuess tries all PINs in every spelling that deed or a contract makes of them, with plain hashes.
func httpGuess(t *testing.T, records, path string) {
	t.Helper()
	digests := map[string]bool{}
	for _, d := range httpHex.FindAllString(records, -1) {
		digests[d] = true
	}
	if len(digests) < 10 {
		t.Fatalf("only %d digests were found on record", len(digests))
	}
	for n := range 10000 {
		pin := fmt.Sprintf("%04d", n)
		for _, text := range []string{
			pin, `"` + pin + `"`, `{"pin":"` + pin + `"}`, `{"name":"ann","pin":"` + pin + `"}`, `{"pin":"` + pin + `","name":"ann"}`,
			path + `{"pin":"` + pin + `"}`, "deed-arguments/1\x00" + `{"name":"ann","pin":"` + pin + `"}`,
			"deed-commitment/1\x00" + `{"name":"ann","pin":"` + pin + `"}`, "deed-commitment/1\x00" + `{"pin":"` + pin + `"}`,
		} {
			a, b, c := sha256.Sum256([]byte(text)), sha1.Sum([]byte(text)), sha512.Sum512([]byte(text))
			for _, sum := range [][]byte{a[:], b[:], c[:]} {
				if digests[hex.EncodeToString(sum)] {
					t.Fatalf("the record holds a plain hash of %q", text)
				}
			}
		}
	}
}
