package gateway

import (
	"errors"

	"deed.dev/deed/internal/action"
)

// sealSecrets puts the call's secret arguments into the operation that is recorded, sealed. Nothing else of the record
// holds them.
func (g *Gateway) sealSecrets(op *action.Operation, a asked, id action.ID) (err error) {
	if len(a.resolved.Secrets) > 0 && g.secrets == nil {
		return action.Errorf(action.CodeInternal, "this gateway keeps no secret arguments; nothing was done")
	}
	for i, s := range a.resolved.Secrets {
		if op.Secrets[i].Sealed, err = g.secrets.Seal(id, s.Name, s.Value()); err != nil {
			return err
		}
	}
	return nil
}

// opener gives an executor the secret arguments of the recorded operation, one at a time, in the moment of sending.
func (g *Gateway) opener(id action.ID, op action.Operation) func(string) (string, error) {
	if len(op.Secrets) == 0 || g.secrets == nil {
		return nil
	}
	return func(name string) (string, error) {
		for _, s := range op.Secrets {
			if s.Name == name {
				return g.secrets.Open(id, name, s.Sealed)
			}
		}
		return "", errors.New("the operation has no such secret argument")
	}
}
