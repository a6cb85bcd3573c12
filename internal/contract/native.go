package contract

import (
	"encoding/json"

	"deed.dev/deed/internal/canonical"
)

// native turns a canonical tree into one that the schema library takes. Numbers keep their digits.
func native(v any) any {
	switch v := v.(type) {
	case canonical.Number:
		return json.Number(v)
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, member := range v {
			m[name] = native(member)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, element := range v {
			l[i] = native(element)
		}
		return l
	default:
		return v
	}
}
