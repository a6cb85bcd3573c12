package contract

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// A secret argument is taken out of a call on entry. From then on a reference stands in its place: in what is recorded, in
// what expressions see, and in the operation. The value is put into the body in the moment of sending.

// Limits of a secret argument, in bytes. A shorter one could not be found in an answer without finding it everywhere.
const (
	minSecret = 8
	maxSecret = 16 << 10
)

// SecretArgument is the value of one secret argument. It prints as its reference, whichever way it is printed.
type SecretArgument struct {
	Name  string
	value func() string
}

// Value gives the text. Only who seals it or makes a keyed digest of it calls this.
func (s SecretArgument) Value() string { return s.value() }

// Format prints the reference.
func (s SecretArgument) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, action.SecretReference(s.Name))
}

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// withhold puts references in the place of secret arguments. The error never holds a value.
func (c *Contract) withhold(args map[string]any, r *Resolved) error {
	if len(c.secrets) == 0 {
		return nil
	}
	for _, name := range c.secrets {
		value, given := args[name]
		if !given {
			continue
		}
		text, ok := value.(string)
		if !ok || len(text) < minSecret || len(text) > maxSecret {
			return invalid("/%s is a secret, and has to be a text of %d to %d bytes", name, minSecret, maxSecret)
		}
		r.Secrets = append(r.Secrets, SecretArgument{name, func() string { return text }})
	}
	if pretends(args) { // it would be replaced by a secret on its way, be it a secret itself
		return invalid("an argument holds the text %s, which stands for a secret argument; nothing was done", action.SecretMark)
	}
	for _, s := range r.Secrets {
		args[s.Name] = action.SecretReference(s.Name)
	}
	for _, s := range r.Secrets {
		for name, value := range args {
			if repeats(value, s.Value()) || repeats(name, s.Value()) {
				return invalid("/%s holds the value of the secret argument /%s, and would be recorded; nothing was done", shownName(name, s), s.Name)
			}
		}
	}
	return nil
}

// pretends reports whether a text or a name in the arguments holds the mark of a reference.
func pretends(v any) bool { return holds(v, action.SecretMark) }

// repeats reports whether another argument gives the secret away.
func repeats(v any, secret string) bool { return holds(v, secret) }

// shownName is the name of an argument, unless that is what gives the secret away.
func shownName(name string, s SecretArgument) string {
	if repeats(name, s.Value()) {
		return "…"
	}
	return name
}

func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holds(e, text) })
	case map[string]any:
		for name, member := range v {
			if strings.Contains(name, text) || holds(member, text) {
				return true
			}
		}
	}
	return false
}

// MeaningfulUnder is Meaningful with a digest in the place of each secret argument, so that another secret is another
// call. digest is to be keyed: what is stored of it gives nothing to guess at.
func (r Resolved) MeaningfulUnder(digest func(name, value string) string) ([]byte, error) {
	if len(r.Secrets) == 0 {
		return r.Meaningful, nil
	}
	value, err := canonical.Parse(r.Meaningful)
	if err != nil {
		return nil, err
	}
	args, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the arguments of %s are no object", r.Contract.Tool)
	}
	for _, s := range r.Secrets {
		args[s.Name] = digest(s.Name, s.Value())
	}
	return canonical.Marshal(args)
}

// TakesSecrets reports whether the tool has secret arguments.
func (c *Contract) TakesSecrets() bool { return len(c.secrets) > 0 }

// secretArguments notes which arguments are secret, and checks that they can be.
func (f *faults) secretArguments(c *Contract) {
	root, _ := c.args.root.(map[string]any)
	properties, _ := root["properties"].(map[string]any)
	for _, name := range sortedKeys(properties) {
		if member(properties[name], "secret") != true {
			continue
		}
		at := child("/input/properties", name)
		c.secrets = append(c.secrets, name)
		if !secretName.MatchString(name) {
			f.add(at, "the name of a secret argument is made of letters, digits and _", "choose another name")
		}
		for _, word := range sortedKeys(properties[name].(map[string]any)) {
			if !slices.Contains([]string{"type", "title", "description", "secret"}, word) {
				f.addAt(f.places.key(child(at, word)), child(at, word), "a secret argument has no other rules: its value is taken out before they are looked at",
					"keep type, title, description and secret")
			}
		}
		if types := typesOf(properties[name]); !slices.Equal(types, []string{"string"}) {
			f.add(at, "a secret argument is a text", "write type: string")
		}
	}
	if len(c.secrets) > 0 {
		f.secretUses(c)
	}
}

// secretUses checks that a secret argument goes into the body as a value of its own, and nowhere else.
func (f *faults) secretUses(c *Contract) {
	var put []string
	var elsewhere []*text
	if c.body != nil {
		for _, t := range c.body.texts() {
			if name, ok := f.secretPlace(c, t); ok {
				put = append(put, name)
			} else {
				elsewhere = append(elsewhere, t)
			}
		}
	}
	for _, n := range c.norms {
		elsewhere = append(elsewhere, n.text)
		if slices.Contains(c.secrets, n.name) {
			f.add(child("/normalize", n.name), "a secret argument is sent as it came", "leave it out here")
		}
	}
	for _, h := range c.headers {
		elsewhere = append(elsewhere, h.value)
	}
	elsewhere = append(elsewhere, c.resource, c.impact)
	addresses := map[string]*address{"/http/url": c.address}
	if c.Lookup != nil {
		elsewhere, addresses["/lookup/request/url"] = append(elsewhere, headerTexts(c.Lookup.request)...), c.Lookup.request.address
	}
	if c.Poll != nil {
		elsewhere, addresses["/poll/request/url"] = append(elsewhere, headerTexts(c.Poll.request)...), c.Poll.request.address
	}
	if c.Undo != nil {
		elsewhere = append(elsewhere, c.Undo.arguments.texts()...)
	}
	const instead = "put it into http.json or http.form, as ${args.NAME} alone"
	for _, t := range elsewhere {
		if t == nil {
			continue
		}
		for _, p := range t.parts {
			if strings.Contains(p.literal, action.SecretMark) {
				f.add(t.path, "the text "+action.SecretMark+" stands for secret arguments", "choose other words")
			}
		}
		for _, e := range t.expressions() {
			for _, u := range e.uses {
				if u.variable == "args" && (u.member == "" || slices.Contains(c.secrets, u.member)) {
					f.add(t.path, "a secret argument has no place here, and args as a whole holds one", instead)
				}
			}
		}
	}
	for path, a := range addresses {
		if a == nil {
			continue
		}
		for _, name := range slices.Concat(a.needs, a.names) {
			if first, _, _ := strings.Cut(name, "."); slices.Contains(c.secrets, first) {
				f.add(path, "a secret argument has no place in a URL", instead)
			}
		}
	}
	for _, name := range c.secrets {
		if slices.Contains(c.Volatile, argumentPointer(name)) {
			f.add("/volatile", "a secret argument decides what the call means", "take it out of volatile")
		}
		if !slices.Contains(put, name) {
			f.add(child("/input/properties", name), "the secret argument is sent nowhere", instead)
		}
	}
}

func headerTexts(q question) []*text {
	var all []*text
	for _, h := range q.headers {
		all = append(all, h.value)
	}
	return all
}

// secretPlace reports whether a text of the body is a secret argument and nothing else.
func (f *faults) secretPlace(c *Contract, t *text) (string, bool) {
	e := t.whole()
	if e == nil {
		return "", false
	}
	source := strings.TrimSpace(e.source)
	name, ok := strings.CutPrefix(source, "args.")
	name = strings.TrimPrefix(name, "?")
	return name, ok && slices.Contains(c.secrets, name)
}
