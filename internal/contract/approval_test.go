package contract_test

import (
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/contract"
)

// How people approve is said in the contract; what is said wrongly, or about a tool that nobody is asked about, does not load.
func TestApproval(t *testing.T) {
	for text, want := range map[string]contract.Approval{
		"each_use: true\n": {Approvers: 1, Expires: 15 * time.Minute},
		"each_use: true\napproval: {approvers: 2, expires: 1h30m, not_requester: true}\n": {Approvers: 2, Expires: 90 * time.Minute, NotRequester: true},
		"each_use: true\napproval: {not_requester: true}\n":                               {Approvers: 1, Expires: 15 * time.Minute, NotRequester: true},
	} {
		if got := load(t, pay+text).Approval; got != want {
			t.Errorf("%s gives %+v, want %+v", text, got, want)
		}
	}
	for text, says := range map[string]string{
		"approval: {approvers: 2}\n":                             "each_use: true",
		"each_use: true\napproval: {}\n":                         "approval",
		"each_use: true\napproval: {approvers: 0}\n":             "approvers",
		"each_use: true\napproval: {approvers: 9}\n":             "approvers",
		"each_use: true\napproval: {approvers: two}\n":           "approvers",
		"each_use: true\napproval: {expires: 8d}\n":              "1s to 7d",
		"each_use: true\napproval: {expires: 500ms}\n":           "1s to 7d",
		"each_use: true\napproval: {expires: soon}\n":            "1s to 7d",
		"each_use: true\napproval: {not_requester: 1}\n":         "not_requester",
		"each_use: true\napproval: {anybody: true}\n":            "anybody",
		"each_use: true\napproval: true\n":                       "approval",
		"each_use: true\napproval: {approvers: 1, expires: 0}\n": "expires",
	} {
		if _, err := contract.Parse("test.yaml", []byte(pay+text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", text, err, says)
		}
	}
}
