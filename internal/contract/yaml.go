package contract

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"deed.dev/deed/internal/canonical"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxFile bounds a contract file. A long one has a few kilobytes, and the YAML library takes its time with odd ones.
	maxFile = 256 << 10
	// maxOpen bounds how many collections one line may open. The YAML parser is recursive.
	maxOpen = canonical.MaxDepth
)

// readDocuments takes a file apart. Anchors, aliases, tags and merge keys are refused: a contract says what it says where
// it says it.
func readDocuments(file string, data []byte) ([]document, LoadErrors) {
	whole := &faults{file: file}
	switch {
	case len(data) > maxFile:
		whole.add("", fmt.Sprintf("the file has more than %d bytes", maxFile), "split it")
		return nil, whole.list
	case !utf8.Valid(data):
		whole.add("", "the file is not valid UTF-8", "")
		return nil, whole.list
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if root, err := canonical.Parse(data); err == nil { // JSON is YAML too, and recorded contracts are JSON
		return []document{{file: file, root: root}}, nil
	}
	var docs []document
	var errs LoadErrors
	for _, chunk := range splitDocuments(data) {
		r := &reader{faults: faults{file: file, places: places{}}, lines: chunk.line}
		root, found := r.read(chunk.text)
		errs = append(errs, r.list...)
		if found && len(r.list) == 0 {
			docs = append(docs, document{file: file, root: root, places: r.places})
		}
	}
	return docs, errs
}

// reader turns one YAML document into a tree.
type reader struct {
	faults
	lines int
}

// read parses the text. It reports false when the text holds nothing but comments.
func (r *reader) read(text string) (root any, found bool) {
	if at, deep := tooManyOpen(text); deep {
		r.addAt(r.place(at), "", fmt.Sprintf("one line opens more than %d collections", maxOpen), "")
		return nil, true
	}
	file, err := parseYAML(text)
	if err != nil {
		at := place{line: r.lines + 1, column: 1}
		msg := "the YAML cannot be read"
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) {
			msg = syntax.Message
			if syntax.Token != nil {
				at = r.place(syntax.Token)
			}
		}
		r.addAt(at, "", msg, "")
		return nil, true
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			r.addAt(r.place(doc.Body.GetToken()), "", "a second document begins here", "put --- on a line of its own before it")
			return nil, true
		}
		body = doc.Body
	}
	if body == nil {
		return nil, false
	}
	if _, onlyComments := body.(*ast.CommentGroupNode); onlyComments {
		return nil, false
	}
	return r.value(body, "", 0), true
}

// parseYAML turns a panic of the YAML library into an error: a file that an operator wrote must not stop the program.
func parseYAML(text string) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("the YAML cannot be read")
		}
	}()
	return parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
}

// tooManyOpen finds the line that would send the recursive parser too deep.
func tooManyOpen(text string) (*token.Token, bool) {
	if strings.Count(text, "[")+strings.Count(text, "{")+strings.Count(text, "- ")+strings.Count(text, "? ") <= maxOpen {
		return nil, false
	}
	depth, line, entries := 0, 0, 0
	for _, t := range lexer.Tokenize(text) {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if t.Position.Line != line {
				line, entries = t.Position.Line, 0
			}
			entries++
		}
		if depth > maxOpen || entries > maxOpen {
			return t, true
		}
	}
	return nil, false
}

func (r *reader) place(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{line: r.lines + 1, column: 1}
	}
	at := place{line: r.lines + t.Position.Line, column: max(t.Position.Column, 1)}
	switch t.Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		at.style = quoted
	case token.LiteralType, token.FoldedType:
		at.style = block
	}
	return at
}
