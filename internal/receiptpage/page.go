// Package receiptpage makes one page of a receipt that a person can open in a browser, offline: it holds the receipt, the
// policy that says who is believed, and the verifier, and checks itself. The package refuses to know whether the receipt
// is valid: the page says so, to whoever opens it.
package receiptpage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"text/template"

	"deed.dev/deed/verifier"
)

// page is a text template, since all that goes in is either ours or in base64; html/template would change the script, and
// with it its hash.
var page = template.Must(template.New("receipt").Parse(verifier.Page))

// Write writes the page. receipt is a receipt file, policy a C2SP tlog-policy file with at least one log. Both go in as
// base64 and never as markup. Only the two blocks whose hashes stand in the page's security policy can run or style it,
// and nothing can be loaded. The error is that of writing.
func Write(w io.Writer, receipt, policy []byte) error {
	data, err := json.Marshal(map[string][]byte{"receipt": receipt, "policy": policy})
	if err != nil {
		return fmt.Errorf("encode receipt page: %w", err)
	}
	script := verifier.Program + verifier.PageScript
	err = page.Execute(w, map[string]string{
		"Style": verifier.PageStyle, "StyleHash": hash(verifier.PageStyle),
		"Script": script, "ScriptHash": hash(script),
		"Data": string(data),
	})
	if err != nil {
		return fmt.Errorf("write receipt page: %w", err)
	}
	return nil
}

// hash is what a content security policy calls a block by.
func hash(block string) string {
	sum := sha256.Sum256([]byte(block))
	return base64.StdEncoding.EncodeToString(sum[:])
}
