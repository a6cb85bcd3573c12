package contract

import (
	"fmt"
	"strconv"
	"strings"
)

var (
	escapeToken   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")
)

// child is the JSON pointer of a member.
func child(pointer, name string) string { return pointer + "/" + escapeToken.Replace(name) }

// item is the JSON pointer of an element.
func item(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// parent cuts the last token off.
func parent(pointer string) string {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return ""
	}
	return pointer[:i]
}

// tokens takes a JSON pointer apart.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		parts[i] = unescapeToken.Replace(p)
	}
	return parts
}

// checkPointer says what is wrong with a JSON pointer that has to name something below the root.
func checkPointer(pointer string) error {
	if !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("%q does not begin with /", pointer)
	}
	rest := strings.ReplaceAll(strings.ReplaceAll(pointer, "~0", ""), "~1", "")
	if strings.Contains(rest, "~") {
		return fmt.Errorf("%q has a ~ that is neither ~0 nor ~1", pointer)
	}
	return nil
}
