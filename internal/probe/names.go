package probe

import (
	"net/url"
	"strings"

	"deed.dev/deed/internal/canonical"
)

// namesEffect reports whether an answer holds something that another effect would not have: an id, a number, a time that
// the request did not bring along. {"ok":true} would be equal for two effects, so its coming again shows nothing.
func namesEffect(a answer, s send) bool {
	if !a.json {
		return false
	}
	known := map[string]bool{string(s.Token): true, s.operation.Path: true}
	note := func(_, value string) { known[value] = true }
	if tree, err := canonical.Parse(s.operation.Body); err == nil {
		scalars(tree, "", note)
	} else if form, err := url.ParseQuery(string(s.operation.Body)); err == nil {
		noteAll(form, note)
	}
	if query, err := url.ParseQuery(s.operation.Query); err == nil {
		noteAll(query, note)
	}
	for part := range strings.SplitSeq(s.operation.Path, "/") {
		if text, err := url.PathUnescape(part); err == nil {
			known[text] = true
		}
	}
	found := false
	scalars(a.tree, "", func(name, value string) {
		isID := strings.HasSuffix(strings.ToLower(name), "id")
		looksMade := len(value) >= 6 && strings.ContainsAny(value, "0123456789") && !strings.Contains(value, " ")
		found = found || !known[value] && (isID || looksMade)
	})
	return found
}

func noteAll(values url.Values, note func(name, value string)) {
	for name, list := range values {
		for _, v := range list {
			note(name, v)
		}
	}
}
