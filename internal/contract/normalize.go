package contract

import (
	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// normalize computes all spellings from the original arguments, and then puts them in place at once.
func (c *Contract) normalize(args map[string]any, r *Resolved) (map[string]any, error) {
	if len(c.norms) == 0 {
		return args, nil
	}
	changed := make(map[string]any, len(args))
	for name, value := range args {
		changed[name] = value
	}
	variables := map[string]any{"args": args}
	for _, n := range c.norms {
		value, present, err := n.text.value(variables)
		if err != nil {
			return nil, invalid("/%s cannot be normalized: its expression %s", n.name, err)
		}
		if _, had := args[n.name]; had || present && value != nil {
			r.Steps = append(r.Steps, action.Step{Kind: "normalize", Field: child("", n.name)})
		}
		if !present || value == nil {
			delete(changed, n.name)
			continue
		}
		changed[n.name] = value
	}
	return changed, nil
}

// digestible gives the arguments their canonical bytes, with and without the volatile ones.
func (c *Contract) digestible(args map[string]any, r *Resolved) (err error) {
	r.Args = args
	if r.Canonical, err = canonical.Marshal(args); err != nil {
		return invalid("the normalized arguments have no canonical form")
	}
	if len(r.Canonical) > maxBody {
		return invalid("the normalized arguments have more than %d bytes", maxBody)
	}
	r.Meaningful = r.Canonical
	if len(c.Volatile) == 0 {
		return nil
	}
	meaningful := clone(args)
	for _, pointer := range c.Volatile {
		drop(meaningful, tokens(pointer))
	}
	r.Meaningful, err = canonical.Marshal(meaningful)
	return err
}

// drop takes a member out. * stands for every element of a list.
func drop(v any, list []string) {
	switch v := v.(type) {
	case map[string]any:
		if len(list) == 1 {
			delete(v, list[0])
		} else {
			drop(v[list[0]], list[1:])
		}
	case []any:
		if list[0] == "*" && len(list) > 1 {
			for _, element := range v {
				drop(element, list[1:])
			}
		}
	}
}
