package contract

import (
	"regexp"
	"strings"

	"deed.dev/deed/internal/action"
)

// address is a URL template taken apart: the target is fixed, and so are the number of path segments and the names of
// query parameters.
type address struct {
	target   action.Target
	shape    string // of the path, with {name} where an argument stands
	segments []segment
	query    template // empty without a query
	needs    []string // arguments that have to be there: those of the path, and {name} in the query
	names    []string // all arguments of the query
}

// segment is what stands between two slashes.
type segment struct {
	literal  string
	template template // empty for a literal
	names    []string
}

var (
	expressionForm = regexp.MustCompile(`\{[^}]*\}`)
	nameForm       = regexp.MustCompile(`^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$`)
	pathLiteral    = regexp.MustCompile(`^([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$`)
	queryLiteral   = regexp.MustCompile(`^([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*$`)
)

// address reads a URL template.
func (f *faults) address(path, raw string) *address {
	scheme, rest, found := strings.Cut(raw, "://")
	if scheme = strings.ToLower(scheme); !found || scheme != "https" && scheme != "http" {
		f.add(path, "the URL does not begin with https:// or http://", "write the whole URL")
		return nil
	}
	if strings.Contains(raw, "${") || strings.Contains(raw, "{args.") {
		f.add(path, "the URL is an RFC 6570 template and has no ${…}", "write {name} for the argument of that name")
		return nil
	}
	if strings.Contains(raw, "#") {
		f.add(path, "a fragment never reaches the target", "leave it out")
		return nil
	}
	end := strings.IndexAny(rest, "/?{\\")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	a := &address{}
	switch {
	case strings.HasPrefix(rest, "{"), strings.Contains(authority, "}"):
		f.add(path, "scheme, host and port have to be literal", "write one contract for each host, and / after the host")
		return nil
	case strings.HasPrefix(rest, "\\"):
		f.add(path, "the URL has a backslash", "write /")
		return nil
	}
	target, err := parseAuthority(scheme, authority)
	if err != nil {
		f.add(path, err.Error(), "")
		return nil
	}
	a.target = target
	if rest == "" || rest[0] == '?' {
		rest = "/" + rest
	}
	if !f.split(a, path, rest) {
		return nil
	}
	return a
}

// split takes path and query apart.
func (f *faults) split(a *address, at, rest string) bool {
	cut := len(rest)
	for _, mark := range []string{"?", "{?", "{&"} {
		if i := strings.Index(rest, mark); i >= 0 {
			cut = min(cut, i)
		}
	}
	path, query := rest[:cut], rest[cut:]
	a.shape = path
	literal := expressionForm.ReplaceAllString(path, "")
	if strings.ContainsAny(literal, "{}") || !pathLiteral.MatchString(literal) {
		f.add(at, "the path has a character that a URL does not have", "percent-encode it")
		return false
	}
	if _, _, ok := f.names(at, path, ""); !ok { // before the slashes cut an expression in two
		return false
	}
	parts := strings.Split(path[1:], "/")
	for i, part := range parts {
		s, ok := f.segment(at, part, i == len(parts)-1)
		if !ok {
			return false
		}
		a.segments = append(a.segments, s)
		a.needs = append(a.needs, s.names...)
	}
	if query == "" {
		return true
	}
	return f.query(a, at, query)
}

func (f *faults) query(a *address, at, query string) bool {
	if strings.HasPrefix(query, "{&") {
		f.add(at, "{&…} continues a query that has not begun", "write {?…}")
		return false
	}
	literal := expressionForm.ReplaceAllString(query, "")
	if strings.ContainsAny(literal, "{}") || !queryLiteral.MatchString(literal) {
		f.add(at, "the query has a character that a URL does not have", "percent-encode it")
		return false
	}
	plain, named, ok := f.names(at, query, "?&")
	if !ok {
		return false
	}
	t, err := newTemplate(query)
	if err != nil {
		f.add(at, "the URL template cannot be read", "write {?name} for a query parameter")
		return false
	}
	a.query, a.names, a.needs = t, append(named, plain...), append(a.needs, plain...)
	return true
}
