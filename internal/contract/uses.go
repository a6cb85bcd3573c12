package contract

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// use is one place where an expression reads a variable or a member of one.
type use struct {
	variable string
	member   string // "" for the variable as a whole
	asks     bool   // has(args.x) and args.?x ask whether it is there
}

// usesOf lists what an expression reads.
func usesOf(checked *cel.Ast) []use {
	var uses []use
	inMember := map[int64]bool{} // identifiers that stand below a member that was noted
	note := func(operand ast.Expr, member string, asks bool) {
		if operand.Kind() == ast.IdentKind {
			inMember[operand.ID()] = true
			uses = append(uses, use{operand.AsIdent(), member, asks})
		}
	}
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			s := e.AsSelect()
			note(s.Operand(), s.FieldName(), s.IsTestOnly())
		case ast.CallKind:
			if operand, member, asks, ok := indexed(e.AsCall()); ok {
				note(operand, member, asks)
			}
		case ast.IdentKind:
			if !inMember[e.ID()] {
				uses = append(uses, use{variable: e.AsIdent()})
			}
		}
	}))
	return uses
}

// indexed recognises args.?x, args["x"] and args[?"x"].
func indexed(call ast.CallExpr) (operand ast.Expr, member string, asks, ok bool) {
	switch call.FunctionName() {
	case operators.OptSelect, operators.OptIndex:
		asks = true
	case operators.Index:
	default:
		return nil, "", false, false
	}
	args := call.Args()
	if len(args) != 2 || args[1].Kind() != ast.LiteralKind {
		return nil, "", false, false
	}
	name, isString := args[1].AsLiteral().(types.String)
	return args[0], string(name), asks, isString
}

// touches reports whether the expression reads the variable in any way.
func (e *expression) touches(variable string) bool {
	for _, u := range e.uses {
		if u.variable == variable {
			return true
		}
	}
	return false
}

// members lists the members of the variable that the expression reads; asked tells which of them it asks for first.
func (e *expression) members(variable string) (names []string, asked map[string]bool) {
	asked = map[string]bool{}
	for _, u := range e.uses {
		if u.variable != variable || u.member == "" {
			continue
		}
		names = append(names, u.member)
		if u.asks {
			asked[u.member] = true
		}
	}
	return names, asked
}
