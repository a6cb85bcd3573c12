package probe

import (
	"net/http"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// answer is what the target said to one request, as far as it is compared: status and body. Header fields are not, since
// most of them differ each time.
type answer struct {
	status   int    // 0 without a whole answer
	reason   string // closed word for why there is none
	replayed bool   // the target itself says that it is a stored answer
	json     bool
	tree     any // of a JSON body, without what is ignored
	text     string
}

func readAnswer(out action.Outcome, ignore []string) answer {
	if out.Status == 0 || !out.Result.Complete {
		reason := out.Reason
		if out.Status != 0 {
			reason = "answer_incomplete"
		}
		return answer{reason: reason}
	}
	a := answer{status: out.Status, text: string(out.Result.Body)}
	for _, h := range out.Result.Headers {
		if h.Name == "idempotent-replayed" && strings.EqualFold(h.Value, "true") {
			a.replayed = true
		}
	}
	tree, err := canonical.Parse(out.Result.Body)
	if err != nil {
		return a
	}
	for _, pointer := range ignore {
		tree = without(tree, tokens(pointer))
	}
	a.json, a.tree = true, tree
	return a
}

func (a answer) succeeded() bool { return a.status >= 200 && a.status < 300 }

// refused reports a refusal that is about the request. What may be about the credential, the moment or the target itself
// is none.
func (a answer) refused() bool {
	switch a.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return a.status >= 400 && a.status < 500
}

// equals compares status and body. JSON is compared by its values.
func (a answer) equals(b answer) bool {
	if a.status == 0 || a.status != b.status || a.json != b.json {
		return false
	}
	if !a.json {
		return a.text == b.text
	}
	return len(differing(a.tree, b.tree)) == 0
}
