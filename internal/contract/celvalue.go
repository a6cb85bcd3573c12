package contract

import (
	"errors"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"deed.dev/deed/internal/canonical"
)

// maxValue bounds what one expression may give, counted in bytes of text and in values.
const maxValue = 1 << 20

var (
	errTooLarge = errors.New("gives more than 1 MiB")
	errNoJSON   = errors.New("gives a value that JSON does not have")
)

// tree turns a CEL value into a canonical one. It reports false for an optional that holds nothing.
func tree(v ref.Val) (value any, present bool, err error) {
	left := maxValue
	return toTree(v, &left, 0)
}

func toTree(v ref.Val, left *int, depth int) (any, bool, error) {
	*left--
	if *left < 0 {
		return nil, false, errTooLarge
	}
	if depth > canonical.MaxDepth {
		return nil, false, errNoJSON
	}
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return nil, false, nil
		}
		return toTree(v.GetValue(), left, depth+1)
	case types.Null:
		return nil, true, nil
	case types.Bool:
		return bool(v), true, nil
	case types.Int:
		return canonical.Number(strconv.FormatInt(int64(v), 10)), true, nil
	case types.Uint:
		return canonical.Number(strconv.FormatUint(uint64(v), 10)), true, nil
	case types.Double:
		text, err := canonical.Marshal(float64(v))
		if err != nil {
			return nil, false, errNoJSON
		}
		return canonical.Number(text), true, nil
	case types.String:
		*left -= len(v)
		return string(v), true, nil
	case traits.Mapper:
		return mapTree(v, left, depth)
	case traits.Lister:
		return listTree(v, left, depth)
	default:
		return nil, false, errNoJSON
	}
}

func mapTree(m traits.Mapper, left *int, depth int) (any, bool, error) {
	members := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			return nil, false, errNoJSON
		}
		*left -= len(key)
		value, present, err := toTree(m.Get(key), left, depth+1)
		if err != nil {
			return nil, false, err
		}
		if present {
			members[string(key)] = value
		}
	}
	return members, true, nil
}

func listTree(l traits.Lister, left *int, depth int) (any, bool, error) {
	elements := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		value, present, err := toTree(it.Next(), left, depth+1)
		if err != nil {
			return nil, false, err
		}
		if present {
			elements = append(elements, value)
		}
	}
	return elements, true, nil
}

// scalarText is the text of a string, an integer or a truth value. A fraction has more than one spelling, and a list none.
func scalarText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case canonical.Number:
		_, signed := v.Int64()
		_, unsigned := v.Uint64()
		if signed || unsigned {
			return string(v), nil
		}
		return "", errors.New("gives a fraction, which has no place in text; use string(…)")
	case nil:
		return "", errors.New("gives null, which has no place in text")
	default:
		return "", errors.New("gives a list or an object, which has no place in text")
	}
}
