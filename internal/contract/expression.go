package contract

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"deed.dev/deed/internal/canonical"
)

const (
	// maxExpression bounds the text of one expression, maxCost the work of one evaluation and maxMemory what it may hold.
	maxExpression = 4 << 10
	maxCost       = 1_000_000
	maxMemory     = 64 << 20
)

// expression is one compiled CEL expression.
type expression struct {
	source  string
	program cel.Program
	kind    *cel.Type
	uses    []use
}

// scope is what an expression can see.
type scope string

const (
	ofCall     scope = "args"                           // the arguments of the call
	ofAnswer   scope = "status, headers and body"       // the target's answer
	ofQuestion scope = "args and deed"                  // the arguments and the identity of the action that is asked about
	ofFinding  scope = "status, headers, body and deed" // the target's answer to a question, and the same identity
	ofUndo     scope = "args and result"                // the arguments of the action that is undone, and its recorded result
)

// scopes holds one CEL environment for each scope. Times, durations and time zones are left out: a contract that read
// them would resolve one call into two operations.
var scopes = map[scope]func() (*cel.Env, error){
	ofCall:     environment(cel.Variable("args", cel.DynType)),
	ofAnswer:   environment(answerVariables...),
	ofQuestion: environment(cel.Variable("args", cel.DynType), identityVariable),
	ofFinding:  environment(append(slices.Clone(answerVariables), identityVariable)...),
	ofUndo:     environment(cel.Variable("args", cel.DynType), cel.Variable("result", cel.DynType)),
}

var (
	answerVariables = []cel.EnvOption{
		cel.Variable("status", cel.IntType),
		cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("body", cel.DynType),
	}
	identityVariable = cel.Variable("deed", cel.MapType(cel.StringType, cel.StringType))
)

func environment(variables ...cel.EnvOption) func() (*cel.Env, error) {
	return sync.OnceValues(func() (*cel.Env, error) {
		without := &env.LibrarySubset{}
		for _, name := range []string{"timestamp", "duration", "getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth",
			"getDate", "getDayOfWeek", "getHours", "getMinutes", "getSeconds", "getMilliseconds"} {
			without.ExcludeFunctions = append(without.ExcludeFunctions, &env.Function{Name: name})
		}
		return cel.NewCustomEnv(append(variables,
			cel.StdLib(cel.StdLibSubset(without)), cel.OptionalTypes(), ext.Strings(), ext.Math(),
			cel.CustomTypeAdapter(exact{types.NewEmptyRegistry()}),
			cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(100))...)
	})
}

// exact gives CEL the values of a canonical tree. Integers stay integers with all their digits.
type exact struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a exact) NativeToValue(v any) ref.Val {
	switch v := v.(type) {
	case canonical.Number:
		if i, ok := v.Int64(); ok {
			return types.Int(i)
		}
		if u, ok := v.Uint64(); ok {
			return types.Uint(u)
		}
		return types.Double(v.Float64())
	case map[string]any:
		return types.NewStringInterfaceMap(a, v)
	case map[string]string:
		return types.NewStringStringMap(a, v)
	case []any:
		return types.NewDynamicList(a, v)
	default:
		return a.Adapter.NativeToValue(v)
	}
}

// issue is a fault of an expression, with its place inside the text.
type issue struct {
	line, column int // from 1 and from 0, as CEL counts
	msg          string
}

// compile parses and checks an expression.
func compile(source string, in scope) (*expression, []issue) {
	environment, err := scopes[in]()
	if err != nil {
		return nil, []issue{{line: 1, msg: err.Error()}}
	}
	if strings.TrimSpace(source) == "" {
		return nil, []issue{{line: 1, msg: "the expression is empty"}}
	}
	checked, problems := environment.Compile(source)
	if problems.Err() != nil {
		var issues []issue
		for _, p := range problems.Errors() {
			issues = append(issues, issue{p.Location.Line(), p.Location.Column(), readable(p.Message, in)})
		}
		return nil, issues
	}
	program, err := environment.Program(checked, cel.CostLimit(maxCost), cel.MemoryLimit(maxMemory))
	if err != nil {
		return nil, []issue{{line: 1, msg: err.Error()}}
	}
	return &expression{source, program, checked.OutputType(), usesOf(checked)}, nil
}

// readable shortens what CEL says to what an author of contracts can act on.
func readable(msg string, in scope) string {
	msg = strings.TrimSpace(strings.TrimPrefix(msg, "Syntax error:"))
	if strings.HasPrefix(msg, "undeclared reference") {
		msg += "; an expression here sees " + string(in)
	}
	if i := strings.Index(msg, " expecting {"); i > 0 {
		msg = msg[:i]
	}
	return "the expression does not compile: " + msg
}

// eval computes the value. The error never repeats what CEL says, since that may quote the values.
func (e *expression) eval(variables map[string]any) (value ref.Val, err error) {
	defer func() { // a function of a library must not stop the program, whatever an argument holds
		if recover() != nil {
			value, err = nil, fmt.Errorf("cannot be computed")
		}
	}()
	value, _, err = e.program.Eval(variables)
	switch {
	case err == nil && !types.IsUnknownOrError(value):
		return value, nil
	case err == nil:
		return nil, fmt.Errorf("cannot be computed")
	case strings.Contains(err.Error(), "cost limit"), strings.Contains(err.Error(), "memory limit"):
		return nil, fmt.Errorf("takes too much work to compute")
	case strings.HasPrefix(err.Error(), "no such key"):
		return nil, fmt.Errorf("needs a member that is absent")
	case strings.HasPrefix(err.Error(), "no such overload"):
		return nil, fmt.Errorf("does not fit the types of the values")
	default:
		return nil, fmt.Errorf("cannot be computed")
	}
}

// isBool reports whether the expression can give a truth value.
func (e *expression) isBool() bool {
	return e.kind.IsExactType(cel.BoolType) || e.kind.IsExactType(cel.DynType)
}
