package httpexec

// Reasons are the closed words that an outcome gives. They never hold a part of the request or of the answer.
const (
	// Refused before anything was sent: the dispatch is not what an executor may perform.
	ReasonWrongChannel    = "wrong_channel"
	ReasonNoIdentity      = "no_identity"      // action, attempt or token is missing
	ReasonNoTrace         = "no_trace_context" // or one that W3C Trace Context does not allow
	ReasonNoAuthorization = "no_authorization" // no decision allows it
	ReasonBindingMismatch = "binding_mismatch" // it is not what was allowed
	ReasonRequestRefused  = "request_refused"  // it cannot go out as it was written down
	ReasonTargetRefused   = "target_refused"   // the target is not named in its one normal form
	ReasonAddressRefused  = "target_address_refused"
	ReasonClosed          = "executor_closed"

	// The credential.
	ReasonVaultLocked        = "vault_locked"
	ReasonCredentialUnknown  = "credential_unknown"   //nolint:gosec // a word
	ReasonCredentialNotBound = "credential_not_bound" //nolint:gosec // a word
	ReasonCredentialUnusable = "credential_unusable"  //nolint:gosec // a word

	// The way to the target.
	ReasonResolveFailed = "resolve_failed"
	ReasonDialFailed    = "dial_failed"
	ReasonTLSFailed     = "tls_failed"
	ReasonTimeout       = "timeout"
	ReasonCancelled     = "cancelled"
	ReasonReset         = "reset"          // the target or something on the way broke the connection
	ReasonResponseLost  = "response_lost"  // the connection ended before an answer
	ReasonTruncated     = "truncated"      // the answer broke off, and what arrived proves nothing
	ReasonProtocolError = "protocol_error" // what came back is no HTTP answer

	// An answer.
	ReasonUnauthorized     = "unauthorized"
	ReasonRedirectRefused  = "redirect_refused"
	ReasonRefused          = "refused_by_target"
	ReasonAskedToComeLater = "asked_to_come_later"
	ReasonAccepted         = "accepted_by_target" // it has taken the work on and finishes it later
	ReasonAmbiguous        = "ambiguous_answer"
)
