package contract

import (
	"fmt"
	"strings"
)

// segment reads one segment of a path.
func (f *faults) segment(at, part string, last bool) (segment, bool) {
	names, _, ok := f.names(at, part, "")
	if !ok {
		return segment{}, false
	}
	if len(names) == 0 {
		switch {
		case part == "" && !last:
			f.add(at, "the path has an empty segment", "leave one of the two slashes out")
			return segment{}, false
		case leavesPlace(part):
			f.add(at, "the path has a dot segment", "write the path that it leads to")
			return segment{}, false
		}
		return segment{literal: part}, true
	}
	t, err := newTemplate(part)
	if err != nil {
		f.add(at, "the URL template cannot be read", "write {name} for an argument")
		return segment{}, false
	}
	return segment{template: t, names: names}, true
}

// names lists the arguments of a template: those of {name}, and those of {?name} and {&name}, which may be absent.
// Operators that can add a segment, a host or raw text are refused.
func (f *faults) names(at, template, operators string) (plain, named []string, ok bool) {
	for _, e := range expressionForm.FindAllString(template, -1) {
		inner, operator := e[1:len(e)-1], ""
		if inner != "" && strings.Contains("+#./;?&=,!@|", inner[:1]) {
			operator, inner = inner[:1], inner[1:]
		}
		list := strings.Split(inner, ",")
		switch {
		case operator != "" && !strings.Contains(operators, operator):
			f.add(at, fmt.Sprintf("the operator %q of %s could let an argument change the shape of the URL", operator, e),
				"write {name} in the path and {?name} for the query")
			return nil, nil, false
		case operator == "" && len(list) > 1:
			f.add(at, fmt.Sprintf("%s puts several arguments into one place", e), "write each in braces of its own")
			return nil, nil, false
		}
		for _, name := range list {
			bare := name
			if operator != "" {
				bare = strings.TrimSuffix(name, "*") // a list then repeats its parameter
			}
			if !nameForm.MatchString(bare) {
				f.add(at, fmt.Sprintf("%q in %s is no name of an argument", name, e), "use letters, digits and _")
				return nil, nil, false
			}
			if operator == "" {
				plain = append(plain, bare)
			} else {
				named = append(named, bare)
			}
		}
	}
	return plain, named, true
}
