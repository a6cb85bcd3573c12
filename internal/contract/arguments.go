package contract

import (
	"fmt"
	"slices"
)

// normalizers compiles the one spelling of each argument that has several.
func (f *faults) normalizers(c *Contract, raw file) {
	for _, name := range sortedKeys(raw.Normalize) {
		at := child("/normalize", name)
		if _, ok := c.args.declared[name]; !ok && !c.args.open {
			f.unknownArgument(at, name, c.args)
			continue
		}
		c.norms = append(c.norms, normalizer{name, raw.Normalize[name], f.text(at, raw.Normalize[name], ofCall)})
		c.Normalized = append(c.Normalized, name)
	}
}

// words compiles the texts about the action: what it touches, and what a person is told.
func (f *faults) words(c *Contract, raw file) {
	c.Resource, c.Impact = raw.Resource, raw.Impact
	if raw.Resource != "" {
		c.resource = f.text("/resource", raw.Resource, ofCall)
	}
	if raw.Impact != "" {
		c.impact = f.text("/impact", raw.Impact, ofCall)
	}
	c.Volatile = f.arguments("/volatile", raw.Volatile, c.args)
	c.Redact = f.arguments("/redact", raw.Redact, c.args)
	if c.Scope == ScopeResource && raw.Resource == "" {
		f.add("/on_lost_response/scope", "the scope is the resource, and the contract names none", "add resource: KIND/${args.NAME}")
	}
}

// arguments reads a list of arguments and gives their JSON pointers.
func (f *faults) arguments(path string, names []string, in *input) []string {
	var pointers []string
	for i, name := range names {
		at := item(path, i)
		pointer := argumentPointer(name)
		if err := checkPointer(pointer); err != nil {
			f.add(at, err.Error(), "")
			continue
		}
		if first := tokens(pointer)[0]; !in.open && in.declared[first] == nil {
			f.unknownArgument(at, first, in)
			continue
		}
		if slices.Contains(pointers, pointer) {
			f.add(at, "this argument stands here twice", "keep one of them")
			continue
		}
		pointers = append(pointers, pointer)
	}
	slices.Sort(pointers)
	return pointers
}

func (f *faults) unknownArgument(path, name string, in *input) {
	instead := "declare it under input.properties"
	if near := nearest(name, sortedKeys(in.declared)); near != "" {
		instead = fmt.Sprintf("did you mean %s?", near)
	}
	f.add(path, fmt.Sprintf("the input has no argument %q", name), instead)
}
