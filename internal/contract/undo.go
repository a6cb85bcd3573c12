package contract

import (
	"fmt"
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// Undo names the tool that undoes an action. An undo is a side effect like any other: an action of its own, under the
// contract of that tool, with its own key and class.
type Undo struct {
	Tool string // another contract of the set

	arguments *node
	places    places // to name what is wrong once the other contract is known
}

// undo checks what undoes an action, as far as this contract tells.
func (f *faults) undo(c *Contract, raw file) {
	if raw.Undo == nil {
		return
	}
	const at = "/undo"
	if c.Class == action.ReadOnly {
		f.addAt(f.places.key(at), at, "a read has nothing to undo", "leave it out")
		return
	}
	if raw.Undo.Tool == c.Tool && c.Tool != "" {
		f.add(at+"/tool", "a tool does not undo itself", "name another tool")
	}
	arguments, _ := raw.Undo.Arguments.tree.(map[string]any)
	if has(arguments, repeatOf) {
		f.addAt(f.places.key(at+"/arguments/"+repeatOf), at+"/arguments/"+repeatOf, "an undo is done once", "leave it out")
	}
	c.Undo = &Undo{Tool: raw.Undo.Tool, arguments: f.tree(at+"/arguments", arguments, ofUndo), places: f.places}
}

// UndoArguments gives the arguments for the tool that undoes an action: canonical JSON of an object. requested are the
// canonical arguments of the intent (Resolved.Requested), result is the recorded result; expressions see null where there
// is none, or none in JSON. The error names what could not be computed, and never a value.
func (c *Contract) UndoArguments(requested, result []byte) ([]byte, error) {
	if c.Undo == nil {
		return nil, fmt.Errorf("undo of %s: the contract names no tool that undoes it", c.Tool)
	}
	args, err := c.recorded(requested)
	if err != nil {
		return nil, fmt.Errorf("undo of %s: %w", c.Tool, err)
	}
	variables := map[string]any{"args": args, "result": nil}
	if value, err := canonical.ParseMax(result, mostResponse); err == nil {
		variables["result"] = value
	}
	value, _, err := c.Undo.arguments.value(variables)
	if err != nil {
		return nil, fmt.Errorf("undo of %s: %w", c.Tool, err)
	}
	data, err := canonical.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("undo of %s: the arguments have no canonical form", c.Tool)
	}
	if len(data) > MaxArguments {
		return nil, fmt.Errorf("undo of %s: the arguments have %d bytes, and at most %d are taken", c.Tool, len(data), MaxArguments)
	}
	return data, nil
}

// undos checks every undo against the contract that it names.
func (s *Set) undos() LoadErrors {
	var list LoadErrors
	for _, c := range s.tools {
		if c.Undo != nil {
			f := &faults{file: c.File, places: c.Undo.places}
			f.undoes(c.Undo, s)
			list = append(list, f.list...)
		}
	}
	return sorted(list)
}

// undoes checks that there is such a tool, that it can undo anything, and that it takes the arguments it would get.
func (f *faults) undoes(u *Undo, s *Set) {
	const at = "/undo/arguments"
	other, ok := s.byName[u.Tool]
	switch {
	case !ok:
		instead := "add its contract"
		if near := nearest(u.Tool, sortedKeys(s.byName)); near != "" {
			instead = fmt.Sprintf("did you mean %s?", near)
		}
		f.add("/undo/tool", fmt.Sprintf("there is no tool %q", u.Tool), instead)
		return
	case !other.HasEffects:
		f.add("/undo/tool", fmt.Sprintf("%s only reads, so it undoes nothing", u.Tool), "name a tool that has effects")
		return
	}
	given := sortedKeys(u.arguments.object)
	for _, name := range given {
		if _, declared := other.args.declared[name]; !declared && !other.args.open {
			instead := "leave it out"
			if near := nearest(name, sortedKeys(other.args.declared)); near != "" {
				instead = fmt.Sprintf("did you mean %s?", near)
			}
			f.addAt(f.places.key(child(at, name)), child(at, name), fmt.Sprintf("%s has no argument %q", u.Tool, name), instead)
		}
	}
	for _, name := range sortedKeys(other.args.required) {
		if !slices.Contains(given, name) {
			f.addAt(f.places.key(at), at, fmt.Sprintf("%s needs %q", u.Tool, name), "say where it comes from")
		}
	}
}
