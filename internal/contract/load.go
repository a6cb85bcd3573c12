package contract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deed.dev/deed/internal/action"
)

// Set is a number of contracts with different names.
type Set struct {
	tools  []*Contract
	byName map[string]*Contract
}

// Load reads every contract file (*.yaml, *.yml, *.json) of a directory. The error is a LoadErrors with every fault of
// every file, or says why the directory could not be read.
func Load(dir string) (*Set, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load contracts: %w", err)
	}
	var all []*Contract
	var faults LoadErrors
	for _, entry := range entries {
		name := entry.Name()
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) || strings.HasPrefix(name, ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("load contracts: %w", err)
		}
		contracts, err := Parse(name, data)
		var list LoadErrors
		if errors.As(err, &list) {
			faults = append(faults, list...)
		}
		all = append(all, contracts...)
	}
	set, list := distinct(all)
	if faults = append(faults, list...); len(faults) == 0 { // a tool with a fault is not missing
		faults = set.undos()
	}
	if len(faults) > 0 {
		return nil, sorted(faults)
	}
	return set, nil
}

// Parse reads the contracts of one file. It gives those that are right, in the order of the file, and an error of type
// LoadErrors when some are not. The name of the file only stands in errors.
func Parse(file string, data []byte) ([]*Contract, error) {
	documents, faults := readDocuments(file, data)
	var contracts []*Contract
	for _, doc := range documents {
		c, errs := build(doc)
		faults = append(faults, errs...)
		if c != nil {
			contracts = append(contracts, c)
		}
	}
	if len(faults) > 0 {
		return contracts, sorted(faults)
	}
	return contracts, nil
}

// NewSet puts contracts together. The error is a LoadErrors: two tools with one name, a name that deed offers a tool of its
// own under, or an undo that the tool it names cannot do.
func NewSet(contracts ...*Contract) (*Set, error) {
	s, faults := distinct(contracts)
	if len(faults) == 0 {
		faults = s.undos()
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return s, nil
}

// distinct puts contracts in the order of their names, and names those whose name is taken.
func distinct(contracts []*Contract) (*Set, LoadErrors) {
	s := &Set{byName: map[string]*Contract{}}
	var faults LoadErrors
	for _, c := range contracts {
		if action.HelperTool(c.Tool) {
			faults = append(faults, &LoadError{File: c.File, Line: c.line, Column: 1, Path: "/tool",
				Msg:     fmt.Sprintf("the name %s belongs to a tool of deed's own, which says how an action stands", c.Tool),
				Instead: "give the tool another name"})
			continue
		}
		if first, taken := s.byName[c.Tool]; taken {
			faults = append(faults, &LoadError{File: c.File, Line: c.line, Column: 1, Path: "/tool",
				Msg:     fmt.Sprintf("the tool %s stands in %s:%d already", c.Tool, first.File, first.line),
				Instead: "give one of the two another name"})
			continue
		}
		s.byName[c.Tool] = c
		s.tools = append(s.tools, c)
	}
	slices.SortFunc(s.tools, func(a, b *Contract) int { return strings.Compare(a.Tool, b.Tool) })
	return s, faults
}

// Tools lists the contracts in the order of their names.
func (s *Set) Tools() []*Contract { return slices.Clone(s.tools) }

// Tool finds a contract by its name.
func (s *Set) Tool(name string) (*Contract, bool) {
	c, ok := s.byName[name]
	return c, ok
}
