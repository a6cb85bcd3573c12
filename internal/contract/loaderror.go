package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// LoadError is one fault of a contract file: where it is, what is wrong and what to write instead.
type LoadError struct {
	File    string
	Line    int    // from 1
	Column  int    // from 1, in characters
	Path    string // JSON pointer into the document; "" for the document itself
	Msg     string
	Instead string // what to write instead; "" where the message says it all
}

func (e *LoadError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Path != "" {
		s += e.Path + ": "
	}
	s += e.Msg
	if e.Instead != "" {
		s += "; " + e.Instead
	}
	return s
}

// LoadErrors holds every fault that was found, in the order of the files.
type LoadErrors []*LoadError

func (e LoadErrors) Error() string {
	lines := make([]string, len(e))
	for i, fault := range e {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single fault.
func (e LoadErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, fault := range e {
		errs[i] = fault
	}
	return errs
}

// faults collects what is wrong with one document.
type faults struct {
	file   string
	places places
	list   LoadErrors
}

// add records a fault at the value with this path, or at its nearest parent that stands in the text.
func (f *faults) add(path, msg, instead string) {
	f.addAt(f.places.of(path), path, msg, instead)
}

func (f *faults) addAt(at place, path, msg, instead string) {
	e := &LoadError{File: f.file, Line: at.line, Column: at.column, Path: path, Msg: msg, Instead: instead}
	if !slices.ContainsFunc(f.list, func(o *LoadError) bool { return *o == *e }) {
		f.list = append(f.list, e)
	}
}

// any reports whether something is wrong at the path or below it.
func (f *faults) any(path string) bool {
	return slices.ContainsFunc(f.list, func(e *LoadError) bool {
		return e.Path == path || strings.HasPrefix(e.Path, path+"/")
	})
}

// sorted puts faults in the order of the text.
func sorted(list LoadErrors) LoadErrors {
	slices.SortStableFunc(list, func(a, b *LoadError) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Msg, b.Msg))
	})
	return list
}
