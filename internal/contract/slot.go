package contract

import (
	"fmt"
	"maps"
)

// slot checks that an identifier can be put at a JSON pointer: nothing is there yet, and every value on the way is an
// object of the contract.
func (f *faults) slot(path, pointer string, body *node) {
	if err := checkPointer(pointer); err != nil {
		f.add(path, err.Error(), "write a JSON pointer such as /metadata/idem_key")
		return
	}
	if body == nil {
		f.add(path, "there is no JSON body to put it in", "write http.json")
		return
	}
	list := tokens(pointer)
	for i, token := range list {
		if body.object == nil {
			f.add(path, fmt.Sprintf("what %q is to be put in is no object of this contract", list[i]),
				"choose a place whose objects stand in http.json")
			return
		}
		next, ok := body.object[token]
		if !ok {
			return
		}
		body = next
	}
	f.add(path, pointer+" has a value already", "choose a free place")
}

// put copies the objects on the way to the pointer and sets the value there.
func put(body any, pointer string, value any) any {
	list := tokens(pointer)
	if len(list) == 0 {
		return value
	}
	m, _ := body.(map[string]any)
	m = maps.Clone(m)
	if m == nil {
		m = map[string]any{}
	}
	rest := ""
	for _, token := range list[1:] {
		rest = child(rest, token)
	}
	m[list[0]] = put(m[list[0]], rest, value)
	return m
}
