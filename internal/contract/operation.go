package contract

import (
	"errors"
	"fmt"
	"slices"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// Target is where the request goes, with path and query. It may hold personal data: it belongs into keyed digests and
// protected records only. The identifiers of the action are no part of it.
func (r Resolved) Target() string {
	return action.Operation{Target: r.Contract.Host, Path: r.path, Query: r.query}.URL()
}

// Operation is what will be sent under the given identity: the id goes to where the target wants its key, and idemKey to
// where the contract makes the action searchable. The same input gives the same bytes.
func (r Resolved) Operation(id action.ID, idemKey string) (action.Operation, error) {
	c := r.Contract
	if id == "" || idemKey == "" && c.metadata.given() {
		return action.Operation{}, fmt.Errorf("operation of %s: the action has no identity yet", c.Tool)
	}
	body, err := r.fill(string(id), idemKey)
	if err != nil {
		return action.Operation{}, fmt.Errorf("operation of %s: %w", c.Tool, err)
	}
	var secrets []action.SealedArgument // whoever records the operation seals them
	for _, s := range r.Secrets {
		secrets = append(secrets, action.SealedArgument{Name: s.Name})
	}
	target := c.Host
	target.Private = slices.Clone(c.Host.Private)
	return action.Operation{
		Channel:    c.Channel,
		Target:     target,
		Method:     c.Method,
		Path:       r.path,
		Query:      r.query,
		Template:   c.Template,
		Headers:    slices.Clone(r.headers),
		Body:       body,
		MediaType:  c.media,
		Credential: c.Credential,
		Key:        action.KeyPlace{Header: c.Key.Header},
		Timeout:    c.Timeout.Milliseconds(),
		MaxResult:  c.ResponseLimit,
		Secrets:    secrets,
	}, nil
}

// fill puts the identifiers into the body and encodes it.
func (r Resolved) fill(id, idemKey string) ([]byte, error) {
	c := r.Contract
	switch {
	case c.body == nil:
		return nil, nil
	case c.form:
		pairs := slices.Clone(r.pairs)
		if c.Key.Form != "" {
			pairs = append(pairs, pair{c.Key.Form, id})
		}
		for _, name := range c.metadata.Form {
			pairs = append(pairs, pair{name, idemKey})
		}
		return encodeForm(pairs), nil
	}
	body := r.body
	if c.Key.JSON != "" {
		body = put(body, c.Key.JSON, id)
	}
	for _, pointer := range c.metadata.JSON {
		body = put(body, pointer, idemKey)
	}
	return canonical.Marshal(body)
}

// fits says early whether the body can be sent: once the action exists it is too late to blame the arguments.
func (r Resolved) fits() error {
	data, err := r.fill("", "")
	switch {
	case err != nil:
		return errors.New("the body cannot be written: it nests too deep or has a number that JSON cannot hold")
	case len(data) > maxBody:
		return fmt.Errorf("the arguments make the body longer than %d bytes", maxBody)
	}
	return nil
}
