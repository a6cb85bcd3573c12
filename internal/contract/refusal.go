package contract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"deed.dev/deed/internal/action"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// check validates arguments and names everything that is wrong with them at once.
func (in *input) check(args any) error {
	err := in.schema.Validate(native(args))
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return action.Errorf(action.CodeInvalidArguments, "the arguments cannot be checked against the tool's input")
	}
	return refusal(findings(invalid))
}

// maxRefusal bounds the text that names what is wrong.
const maxRefusal = 8 << 10

func refusal(list []finding) error {
	slices.SortStableFunc(list, func(a, b finding) int { return strings.Compare(a.path, b.path) })
	var b strings.Builder
	seen, left := map[string]bool{}, 0
	for _, found := range list {
		line := shownPath(found.path) + " " + found.text
		switch {
		case seen[line]:
		case b.Len()+len(line) > maxRefusal:
			left++
		default:
			if b.Len() > 0 {
				b.WriteString("; ")
			}
			b.WriteString(line)
		}
		seen[line] = true
	}
	if left > 0 {
		fmt.Fprintf(&b, "; and %d more", left)
	}
	return action.Errorf(action.CodeInvalidArguments, "%s", b.String())
}

// shownPath makes a path fit to print: names come from the caller.
func shownPath(path string) string {
	if path == "" {
		return "the arguments as a whole:"
	}
	const most = 200
	if len(path) > most {
		path = strings.ToValidUTF8(path[:most], "") + "…"
	}
	if strings.ContainsFunc(path, unprintable) {
		return fmt.Sprintf("%+q", path)
	}
	return path
}
