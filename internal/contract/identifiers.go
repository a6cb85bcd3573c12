package contract

import (
	"fmt"
	"strings"
)

// identifiers places the key and idem_key in the request.
func (f *faults) identifiers(c *Contract, raw file) {
	c.metadata = raw.Metadata
	var taken []string
	place := func(path, pointer string, form bool) {
		body := c.body
		if c.form != form {
			body = nil
		}
		if form {
			f.formSlot(path, pointer, body)
		} else {
			f.slot(path, pointer, body)
		}
		for _, other := range taken {
			if other == pointer || strings.HasPrefix(pointer, other+"/") || strings.HasPrefix(other, pointer+"/") {
				f.add(path, fmt.Sprintf("%q is in the way of another identifier", pointer), "choose a place of its own")
			}
		}
		taken = append(taken, pointer)
	}
	if c.Key.JSON != "" {
		place("/on_lost_response/key/json", c.Key.JSON, false)
	}
	if c.Key.Form != "" {
		place("/on_lost_response/key/form", c.Key.Form, true)
	}
	for i, p := range raw.Metadata.JSON {
		place(f.element("/metadata/json", i), p, false)
	}
	for i, p := range raw.Metadata.Form {
		place(f.element("/metadata/form", i), p, true)
	}
}

func (f *faults) formSlot(path, name string, body *node) {
	switch {
	case body == nil:
		f.add(path, "there is no form body to put it in", "write http.form")
	case name == "":
		f.add(path, "the field has no name", "")
	case body.object[name] != nil:
		f.add(path, fmt.Sprintf("the form field %q has a value already", name), "choose a free name")
	}
}

// element is the path of an element, or of the value itself when it stands alone instead of in a list.
func (f *faults) element(path string, i int) string {
	if _, listed := f.places[item(path, i)]; listed {
		return item(path, i)
	}
	return path
}
