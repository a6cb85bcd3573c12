package httpexec

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// refuse gives the reason why a dispatch may not be performed, or "". An executor is the last boundary: it does not
// trust that the caller looked.
func refuse(d action.Dispatch) string {
	switch op := d.Operation; {
	case op.Channel != "http":
		return ReasonWrongChannel
	case d.Action == "" || d.Attempt == "" || (op.Key.Header != "" && d.Token == ""):
		return ReasonNoIdentity
	case !hexID(d.Trace.TraceID, 32) || !hexID(d.Trace.SpanID, 16):
		return ReasonNoTrace
	case d.Allowed == "":
		return ReasonNoAuthorization
	case d.Allowed != d.Binding:
		return ReasonBindingMismatch
	case !normalTarget(op.Target):
		return ReasonTargetRefused
	}
	return ""
}

// hexID accepts an identifier of W3C Trace Context: lower-case hex, not all zero.
func hexID(s string, length int) bool {
	if len(s) != length || strings.Trim(s, "0") == "" {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
		default:
			return false
		}
	}
	return true
}

// normalTarget accepts a target in its one form: what was checked, approved and looked up in the vault is what is
// dialled. User-info, a trailing dot, brackets or upper case would make two names of one host.
func normalTarget(t action.Target) bool {
	if t.Scheme != "https" && t.Scheme != "http" || t.Port < 1 || t.Port > 65535 {
		return false
	}
	if len(t.Host) == 0 || len(t.Host) > 253 || strings.HasSuffix(t.Host, ".") {
		return false
	}
	if strings.Contains(t.Host, ":") {
		_, err := netip.ParseAddr(t.Host)
		return err == nil
	}
	for i := range len(t.Host) {
		switch c := t.Host[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return true
}

// open opens the operation's credential, or gives nil where it has none.
func (e *Executor) open(ctx context.Context, op action.Operation) (*vault.Opened, error) {
	if op.Credential == "" {
		return nil, nil
	}
	if e.vault == nil {
		return nil, &sendError{ReasonCredentialUnknown, nil}
	}
	opened, err := e.vault.Open(ctx, op.Credential, op.Target)
	switch {
	case err == nil:
		return opened, nil
	case errors.Is(err, vault.ErrLocked):
		return nil, &sendError{ReasonVaultLocked, err}
	case errors.Is(err, vault.ErrUnknown):
		return nil, &sendError{ReasonCredentialUnknown, err}
	case errors.Is(err, vault.ErrNotBound):
		return nil, &sendError{ReasonCredentialNotBound, err}
	default:
		return nil, &sendError{ReasonCredentialUnusable, err}
	}
}

// beforeSend gives the word for an attempt that ended before its first byte.
func beforeSend(ctx context.Context, err error) string {
	if reason := ended(ctx); reason != "" {
		return reason
	}
	var s *sendError
	if errors.As(err, &s) {
		return s.reason
	}
	return ReasonDialFailed
}

// ended says why the attempt's context is over, or "".
func ended(ctx context.Context) string {
	switch err := ctx.Err(); {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return ReasonTimeout
	default:
		return ReasonCancelled
	}
}

// notSent is the outcome of an attempt of which provably no byte left.
func notSent(reason string) action.Outcome {
	return action.Outcome{State: action.AttemptNotSent, Certainty: action.NoEffectProven, Reason: reason}
}
