package httpexec

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// conclude says what the exchange proves.
func (e *Executor) conclude(ctx context.Context, judge action.Judge, got exchanged, opened *vault.Opened) action.Outcome {
	if got.resp == nil {
		return withoutAnswer(ctx, got)
	}
	a := redacted(got, opened)
	out := action.Outcome{
		BytesSent: got.sent, Status: got.resp.StatusCode, Result: a.result(),
		RetryAfter: retryAfter(got.resp.Header.Get("Retry-After"), e.now()),
	}
	var verdict action.Verdict
	if judge != nil {
		verdict = judge(a.response())
	}
	out.Job = verdict.Job
	switch verdict.Certainty {
	case action.EffectProven:
		out.State, out.Certainty = action.AttemptCompleted, action.EffectProven
	case action.NoEffectProven:
		out.State, out.Certainty, out.Retry = action.AttemptRefused, action.NoEffectProven, verdict.Retry
		out.Reason = refusal(out.Status, verdict.Retry)
	default:
		unproved(ctx, &out, got.err)
	}
	return out
}

// withoutAnswer is the outcome where no status came back. Zero bytes prove that nothing was sent; any other number
// proves nothing.
func withoutAnswer(ctx context.Context, got exchanged) action.Outcome {
	reason := broken(ctx, got)
	if got.sent == 0 {
		return notSent(reason)
	}
	out := action.Outcome{State: action.AttemptTransportError, BytesSent: got.sent, Reason: reason}
	if reason == ReasonTimeout {
		out.State = action.AttemptTimeout
	}
	return out
}

// unproved fills in an answer about which the contract says nothing.
func unproved(ctx context.Context, out *action.Outcome, bodyErr error) {
	switch {
	case out.Job != "":
		out.State, out.Reason = action.AttemptCompleted, ReasonAccepted
	case out.Status == http.StatusTemporaryRedirect || out.Status == http.StatusPermanentRedirect:
		// These mean by definition that the request was not acted on here, and has to be made elsewhere.
		out.State, out.Certainty, out.Reason = action.AttemptRefused, action.NoEffectProven, ReasonRedirectRefused
	case out.Status == http.StatusUnauthorized:
		out.State, out.Reason = action.AttemptCompleted, ReasonUnauthorized
	case bodyErr != nil && ended(ctx) == ReasonTimeout:
		out.State, out.Reason = action.AttemptTimeout, ReasonTimeout
	case bodyErr != nil && ended(ctx) == ReasonCancelled:
		out.State, out.Reason = action.AttemptTransportError, ReasonCancelled
	case bodyErr != nil:
		out.State, out.Reason = action.AttemptTransportError, ReasonTruncated
	default:
		out.State, out.Reason = action.AttemptCompleted, ReasonAmbiguous
	}
}

func refusal(status int, retry bool) string {
	switch {
	case status == http.StatusUnauthorized:
		return ReasonUnauthorized
	case status >= 300 && status < 400:
		return ReasonRedirectRefused
	case retry:
		return ReasonAskedToComeLater
	default:
		return ReasonRefused
	}
}

// broken gives the word for what ended an exchange. Errors themselves stay inside: they quote addresses, URLs and what
// the server sent.
func broken(ctx context.Context, got exchanged) string {
	err := got.err
	if reason := ended(ctx); reason != "" {
		return reason
	}
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return ReasonReset
	case errors.As(err, &timeout) && timeout.Timeout():
		return ReasonTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return ReasonResponseLost
	case got.stream: // the ways in which HTTP/2 gives up a request, all in types of their own
		return ReasonReset
	default:
		return ReasonProtocolError
	}
}
