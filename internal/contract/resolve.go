package contract

import (
	"errors"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

const (
	// MaxArguments bounds the arguments of one call, in bytes.
	MaxArguments = 1 << 20
	// maxBody bounds what a request carries. A contract may repeat an argument.
	maxBody = 4 << 20
	// maxWords bounds the resource and the impact.
	maxWords = 8 << 10
)

// Resolved is a call that became one operation, but for the identifiers that the action will get.
type Resolved struct {
	Contract *Contract

	Requested  []byte // canonical arguments as they came, without repeat_of
	Args       any    // canonical tree after defaults and normalizers
	Canonical  []byte // of Args
	Meaningful []byte // of Args without the volatile ones: what finds a repeat
	RepeatOf   string // "" when the call repeats nothing on purpose
	Resource   string // "" when the contract names none
	Impact     string // "" when the contract says none; safe to print
	Steps      []action.Step
	Secrets    []SecretArgument // taken out of everything above and below; references stand in their place

	path    string
	query   string
	headers []action.Header
	body    any
	pairs   []pair
}

// Resolve checks the arguments of a call and computes what they ask for. Nothing is coerced: text that looks like a list
// stays text. The error is an *action.Error with the code INVALID_ARGUMENTS; it names every argument that is wrong and
// never a value.
func (c *Contract) Resolve(raw []byte) (Resolved, error) {
	r := Resolved{Contract: c}
	args, err := c.read(raw, &r)
	if err == nil {
		err = c.withhold(args, &r)
	}
	if err == nil {
		args, err = c.settle(args, &r)
	}
	if err != nil {
		return Resolved{}, err
	}
	if err := c.digestible(args, &r); err != nil {
		return Resolved{}, err
	}
	if err := c.request(args, &r); err != nil {
		return Resolved{}, err
	}
	if err := c.describe(args, &r); err != nil {
		return Resolved{}, err
	}
	return r, nil
}

// recorded gives arguments that are on record (Resolved.Requested) with defaults and in their one spelling again. References
// stand for secret ones.
func (c *Contract) recorded(requested []byte) (map[string]any, error) {
	var r Resolved
	args, err := c.read(requested, &r)
	if err != nil {
		return nil, err
	}
	return c.settle(args, &r)
}

// settle checks the arguments of a call, and gives them with defaults and in their one spelling.
func (c *Contract) settle(args map[string]any, r *Resolved) (_ map[string]any, err error) {
	if r.Requested, err = canonical.Marshal(args); err != nil {
		return nil, invalid("the arguments have no canonical form")
	}
	if err := c.args.check(args); err != nil {
		return nil, err
	}
	if r.Steps, err = c.args.fill(args); err != nil {
		return nil, err
	}
	if len(r.Steps) > 0 {
		if err := c.args.check(args); err != nil {
			return nil, err
		}
	}
	return c.normalize(args, r)
}

func invalid(format string, values ...any) error {
	return action.Errorf(action.CodeInvalidArguments, format, values...)
}

// read parses the arguments and takes repeat_of out of them.
// maxValues bounds how many values one call may hold: validation takes far more than parsing for each.
const maxValues = 20_000

// values counts the values of a tree, and stops soon after most.
func values(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if n += values(member, most-n); n > most {
				return n
			}
		}
	case []any:
		for _, element := range v {
			if n += values(element, most-n); n > most {
				return n
			}
		}
	}
	return n
}

func (c *Contract) read(raw []byte, r *Resolved) (map[string]any, error) {
	if len(raw) > MaxArguments {
		return nil, invalid("the arguments have %d bytes, and at most %d are taken", len(raw), MaxArguments)
	}
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	value, err := canonical.Parse(raw)
	var refused *canonical.Error
	if errors.As(err, &refused) {
		return nil, invalid("%s: %s", shownPath(refused.Path), refused.Msg)
	}
	if n := values(value, maxValues); n > maxValues {
		return nil, invalid("the arguments hold more than %d values", maxValues)
	}
	args, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, invalid("the arguments have to be a JSON object")
	}
	token, given := args[repeatOf]
	if !given || !c.HasEffects {
		return args, nil
	}
	delete(args, repeatOf)
	if r.RepeatOf, ok = token.(string); !ok || r.RepeatOf == "" {
		return nil, invalid("/%s has to be the token of a completed result; leave it out to do something new", repeatOf)
	}
	return args, nil
}

// request computes what is sent.
func (c *Contract) request(args map[string]any, r *Resolved) (err error) {
	variables := map[string]any{"args": args}
	if r.path, r.query, err = c.address.expand(args); err != nil {
		return invalid("%s", err)
	}
	r.Steps = append(r.Steps, action.Step{Kind: "template", Field: "url", Detail: c.Template})
	if r.headers, err = expandHeaders(c.headers, variables); err != nil {
		return invalid("%s", err)
	}
	for _, h := range r.headers {
		r.Steps = append(r.Steps, action.Step{Kind: "header", Field: h.Name})
	}
	if c.body != nil {
		if c.form {
			r.pairs, err = c.body.form(variables)
		} else {
			r.body, _, err = c.body.value(variables)
		}
		if err == nil {
			err = r.fits()
		}
		if err != nil {
			return invalid("%s", err)
		}
		r.Steps = append(r.Steps, action.Step{Kind: "body", Field: c.media})
	}
	if c.Credential != "" {
		r.Steps = append(r.Steps, action.Step{Kind: "credential", Field: c.Credential})
	}
	if c.Key.Given() {
		r.Steps = append(r.Steps, action.Step{Kind: "key", Field: c.Key.Place(), Detail: "the action's id"})
	}
	return nil
}
