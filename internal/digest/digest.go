// Package digest makes deed's three digests and its operation key, and keeps them apart.
//
//   - fingerprint finds retries. It is keyed, so that what is stored gives nothing to guess at.
//   - args_fingerprint only tells that one key came with two sets of arguments.
//   - binding_digest is what an approval is bound to, and what the executor compares in the moment of sending.
//   - idem_key is where an intent is found again. It comes from durable state, never from arguments.
//
// None of them ever goes to a target or an agent. The package knows nothing of storage, of contracts or of what a match
// leads to.
package digest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// IdemKey is the operation key of an intent: SHA-256 of "run:step:tool_call_id" in lower-case hex. The run is deed's own
// identifier and the step an integer, so that the parts cannot run together.
func IdemKey(run action.RunID, step int64, toolCallID string) string {
	sum := sha256.Sum256([]byte(string(run) + ":" + strconv.FormatInt(step, 10) + ":" + toolCallID))
	return hex.EncodeToString(sum[:])
}

// Record is the canonical action record: what a repeat is recognised by. It never holds a secret.
type Record struct {
	Actor         string
	Tool          string
	Channel       string
	Target        string // scheme, host, port, path and query
	CredentialRef string
	Method        string
	Arguments     any // canonical tree, after defaults and normalisation, without volatile fields
	IntentScope   string
}

// Canonical is the record as deed-canonical/1 writes it, with exactly the eight members of the record.
func (r Record) Canonical() ([]byte, error) {
	return canonical.Marshal(map[string]any{
		"actor":          r.Actor,
		"tool":           r.Tool,
		"channel":        r.Channel,
		"target":         r.Target,
		"credential_ref": r.CredentialRef,
		"method":         r.Method,
		"arguments":      r.Arguments,
		"intent_scope":   r.IntentScope,
	})
}

// Of makes the digests of a record under one key. The effect is the record without its run: it finds the same effect
// asked for by another run.
func (k Key) Of(r Record, args []byte, resource string) (action.Digests, error) {
	whole, err := r.Canonical()
	if err != nil {
		return action.Digests{}, err
	}
	r.IntentScope = "any"
	effect, err := r.Canonical()
	if err != nil {
		return action.Digests{}, err
	}
	d := action.Digests{
		KeyID:       k.ID,
		Fingerprint: k.mac("fingerprint", whole),
		Effect:      k.mac("effect", effect),
		Args:        k.mac("arguments", args),
	}
	if resource != "" {
		d.Resource = k.mac("resource", []byte(r.Actor+"\x00"+resource))
	}
	return d, nil
}

// Secret is the keyed digest that stands for a secret argument in what a repeat is recognised by.
func (k Key) Secret(name, value string) string { return k.mac("secret", []byte(name+"\x00"+value)) }

// Body is the keyed digest of a request's body: what is sent may be guessed, and must not be found that way.
func (k Key) Body(body []byte) string { return k.mac("body", body) }

// mac is a keyed digest; what separates the uses of one key.
func (k Key) mac(what string, data []byte) string {
	h := hmac.New(sha256.New, k.secret())
	h.Write([]byte("deed-" + what + "/1\x00"))
	h.Write(data)
	return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Binding is what a decision is bound to: the action, its resolved target, the credential reference and the commitment
// to the exact bytes that will be sent. Changing any of them gives another digest.
func Binding(id action.ID, op action.Operation, commitment action.Commitment) (string, error) {
	headers := make([]any, len(op.Headers))
	for i, h := range op.Headers {
		headers[i] = h.Name
	}
	body, err := canonical.Marshal(map[string]any{
		"action_id":      string(id),
		"channel":        op.Channel,
		"scheme":         op.Target.Scheme,
		"host":           op.Target.Host,
		"port":           op.Target.Port,
		"method":         op.Method,
		"path_template":  op.Template,
		"headers":        headers,
		"credential_ref": op.Credential,
		"operation":      string(commitment),
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte("deed-binding/1\x00"), body...))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// RunBinding is what a person's decision about a run is bound to: the run, its principal, and the process behind it. A new
// process of the same program has another.
func RunBinding(run action.Run) (string, error) {
	e := run.Actor.Evidence
	body, err := canonical.Marshal(map[string]any{
		"run_id":     string(run.ID),
		"actor":      run.Actor.String(),
		"pid":        e.PID,
		"start":      strconv.FormatUint(e.StartTime, 10),
		"boot_id":    e.BootID,
		"executable": e.Executable,
		"digest":     e.Digest,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte("deed-run-binding/1\x00"), body...))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
