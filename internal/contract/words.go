package contract

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"deed.dev/deed/internal/canonical"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// finding is one thing in which a value differs from its schema. Its words come from the schema, never from the value.
type finding struct {
	path string
	text string
	kind jsonschema.ErrorKind
}

// findings lists every difference, each at the JSON pointer of the value that it is about.
func findings(err *jsonschema.ValidationError) []finding {
	at := ""
	for _, token := range err.InstanceLocation {
		at = child(at, token)
	}
	var list []finding
	switch k := err.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			list = append(list, finding{child(at, name), "is missing", k})
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			list = append(list, finding{child(at, name), fmt.Sprintf("is missing and needed beside %q", k.Prop), k})
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			list = append(list, finding{child(at, name), "is unknown", k})
		}
	case *kind.FalseSchema:
		list = append(list, finding{at, "is not allowed here", k})
	default:
		if s := say(k); s != "" {
			list = append(list, finding{at, s, k})
		}
	}
	for _, cause := range err.Causes {
		if len(list) >= maxFindings {
			break
		}
		list = append(list, findings(cause)...)
	}
	return list
}

// maxFindings bounds how much that is wrong is put into words: a caller can make hundreds of thousands of mistakes at once.
const maxFindings = 1000

// say puts one kind of difference into words. It says nothing for kinds that only hold others.
func say(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		return ""
	case *kind.Type:
		return fmt.Sprintf("has to be of type %s and is of type %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return "has to be one of " + list(k.Want)
	case *kind.Const:
		return "has to be " + list([]any{k.Want})
	case *kind.Format:
		return "is not written as a valid " + k.Want
	case *kind.Pattern:
		return "does not match " + k.Want
	case *kind.MinLength:
		return fmt.Sprintf("needs at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("may have at most %d characters", k.Want)
	case *kind.Minimum:
		return "has to be at least " + number(k.Want)
	case *kind.Maximum:
		return "has to be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "has to be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "has to be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "has to be a multiple of " + number(k.Want)
	default:
		return sayCollection(k)
	}
}

func sayCollection(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinProperties:
		return fmt.Sprintf("needs at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("may have at most %d members", k.Want)
	case *kind.PropertyNames:
		return "has a member whose name is not allowed"
	case *kind.MinItems:
		return fmt.Sprintf("needs at least %d elements", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("may have at most %d elements", k.Want)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d elements too many", k.Count)
	case *kind.UniqueItems:
		return fmt.Sprintf("has equal elements at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains, *kind.MinContains:
		return "lacks an element that it needs"
	case *kind.MaxContains:
		return "has an element too often"
	case *kind.AnyOf:
		return "has none of the allowed forms"
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return "has more than one of the forms that exclude each other"
		}
		return "has none of the allowed forms"
	case *kind.Not:
		return "has a form that is not allowed"
	default:
		return "is not as its schema says"
	}
}

// list writes values of the schema, as JSON.
func list(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		text, err := canonical.Marshal(v)
		if err != nil {
			text = []byte("…")
		}
		texts[i] = string(text)
	}
	return strings.Join(texts, ", ")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	text, _ := json.Marshal(f)
	return string(text)
}
