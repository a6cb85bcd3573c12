package eventlog

// wire is a body as JSON. The names are part of the journal's format: they are added to, never changed.
type wire struct {
	Prev string `json:"prev"`
	Seq  int64  `json:"seq"`
	V    int64  `json:"v"`

	Event        string `json:"event"`
	EventID      string `json:"event_id"`
	Time         string `json:"time"`
	RootRunID    string `json:"root_run_id"`
	IntentID     string `json:"intent_id"`
	ActionID     string `json:"action_id"`
	AttemptID    string `json:"attempt_id"`
	CallID       string `json:"call_id"`
	TraceID      string `json:"trace_id"`
	SpanID       string `json:"span_id"`
	ParentSpanID string `json:"parent_span_id"`
	EdgeType     string `json:"edge_type"`
	After        string `json:"after"`

	Actor    *wireActor    `json:"actor"`
	Process  *wireProcess  `json:"process"`
	Run      *wireRun      `json:"run"`
	Call     *wireCall     `json:"call"`
	Intent   *wireIntent   `json:"intent"`
	Action   *wireAction   `json:"action"`
	Digests  *wireDigests  `json:"digests"`
	Binding  *wireBinding  `json:"binding"`
	Attempt  *wireAttempt  `json:"attempt"`
	Outcome  *wireAttempt  `json:"outcome"`
	Result   *wireResult   `json:"result"`
	Delivery *wireDelivery `json:"delivery"`
	Request  *wireRequest  `json:"request"`
	Observed *wireObserved `json:"observation"`
	Job      *wireJob      `json:"job"`
	Purge    *wirePurge    `json:"purge"`
	Read     *wireRead     `json:"read"`
	Review   *wireReview   `json:"review"`

	Approval   *wireApproval   `json:"approval"`
	Decision   *wireDecided    `json:"decision"`
	Void       *wireVoid       `json:"void"`
	Revocation *wireRevocation `json:"revocation"`
}

type wireActor struct {
	Kind     string `json:"kind"`
	Identity string `json:"identity"`
	Strength string `json:"strength"`
	Shared   bool   `json:"shared"`
}

type wireProcess struct {
	PID        int    `json:"pid"`
	StartTicks string `json:"start_ticks"`
	BootID     string `json:"boot_id"`
	Executable string `json:"executable"`
	Digest     string `json:"digest"`
	Via        string `json:"via"`
}

type wireRun struct {
	Key       string `json:"key"`
	StartedAt string `json:"started_at"`
}

type wireCall struct {
	Transport   string `json:"transport"`
	Era         string `json:"era"`
	RequestID   string `json:"request_id"`
	Session     string `json:"session"`
	Client      string `json:"client"`
	Upstream    string `json:"upstream_context_source"`
	Traceparent string `json:"traceparent"`
	Tracestate  string `json:"tracestate"`
	IdemKey     string `json:"idem_key"`
	Match       string `json:"match"`
	PriorState  string `json:"prior_state"`
	Why         string `json:"why"`
	Code        string `json:"code"`
	Times       int    `json:"times"`
}

type wireIntent struct {
	Tool       string `json:"tool"`
	Contract   string `json:"contract"`
	IdemKey    string `json:"idem_key"`
	Step       int64  `json:"step"`
	ToolCallID string `json:"tool_call_id"`
	KeySource  string `json:"key_source"`
	Arguments  string `json:"arguments"`
	LoggedAt   string `json:"logged_at"`
}

type wireAction struct {
	Channel       string `json:"channel"`
	Protocol      string `json:"protocol"`
	Host          string `json:"host"`
	Port          int    `json:"port"`
	Method        string `json:"method"`
	PathTemplate  string `json:"path_template"`
	CredentialRef string `json:"credential_ref"`
	State         string `json:"state"`

	// Of an accepted event.
	Class         string   `json:"class"`
	Contract      string   `json:"contract"`
	MaxAttempts   int      `json:"max_attempts"`
	KeyLifeUS     int64    `json:"key_life_us"`
	AttachForUS   int64    `json:"attach_for_us"`
	Private       []string `json:"private"`
	Operation     string   `json:"operation"`
	Repeats       string   `json:"repeats"`
	SimilarTo     string   `json:"similar_to"`
	Compensates   string   `json:"compensates"`
	ReviewAfterUS int64    `json:"review_after_us"`
	KeepResultUS  int64    `json:"keep_result_us"`
	CanAsk        bool     `json:"can_ask"`

	// Of a move.
	Transition   string `json:"transition"`
	FromState    string `json:"from_state"`
	FromAttempt  int    `json:"from_attempt"`
	Reason       string `json:"reason"`
	FailureClass string `json:"failure_class"`
	RejectReason string `json:"reject_reason"`
	Recovery     string `json:"recovery"`
	ResendBefore string `json:"resend_before"`
	NotBefore    string `json:"not_before"`
	ResendOver   bool   `json:"resend_over"`
	Approval     string `json:"approval"`

	// Of everything that an owner does.
	FromEpoch int64  `json:"from_epoch"`
	Owner     string `json:"owner"`
}

type wireDigests struct {
	KeyID       string `json:"key_id"`
	Fingerprint string `json:"fingerprint"`
	Effect      string `json:"effect_fingerprint"`
	Args        string `json:"args_fingerprint"`
	Resource    string `json:"resource_fingerprint"`
}

type wireBinding struct {
	DecisionID string `json:"decision_id"`
	Kind       string `json:"kind"`
	Rule       string `json:"rule"`
	Digest     string `json:"binding_digest"`
	Until      string `json:"until"`
}

type wireAttempt struct {
	AttemptID  string `json:"attempt_id"`
	Number     int    `json:"number"`
	State      string `json:"state"`
	Certainty  string `json:"certainty"`
	BytesSent  *int64 `json:"bytes_sent"` // absent when nobody was left to count
	HTTPStatus int    `json:"http_status"`
	Reason     string `json:"reason"`
	Remote     string `json:"remote"`
	SpanID     string `json:"span_id"`
	RetryOf    string `json:"retry_of"`
	StartedAt  string `json:"started_at"`
	EndedAt    string `json:"ended_at"`
}

type wireResult struct {
	ResultID     string `json:"result_id"`
	Commitment   string `json:"commitment"`
	MediaType    string `json:"media_type"`
	Size         int64  `json:"size"`
	Complete     bool   `json:"complete"`
	Withheld     bool   `json:"withheld"`
	RepeatDigest string `json:"repeat_digest"`
}

type wireDelivery struct {
	From string `json:"from"`
	To   string `json:"to"`
	Why  string `json:"why"`
}

// wireRequest describes a request without its content.
type wireRequest struct {
	HeaderNames []string   `json:"header_names"`
	BodyDigest  string     `json:"body_digest"`
	BodyBytes   int64      `json:"body_bytes"`
	Redaction   string     `json:"redaction_status"`
	Steps       []wireStep `json:"steps"`
}

type wireStep struct {
	Kind   string `json:"kind"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// wireObserved is what was learned apart from the attempts.
type wireObserved struct {
	ObservationID string `json:"observation_id"`
	Number        int    `json:"number"`
	Kind          string `json:"kind"`
	About         string `json:"about_attempt"`
	Finding       string `json:"finding"`
	Certainty     string `json:"certainty"`
	HTTPStatus    int    `json:"http_status"`
	Reason        string `json:"reason"`
	Remote        string `json:"remote"`
	SpanID        string `json:"span_id"`
	Evidence      string `json:"evidence"`
	StartedAt     string `json:"started_at"`
	EndedAt       string `json:"ended_at"`
}

// wireJob is the work that a target took on: the commitment to its id.
type wireJob struct {
	Commitment string `json:"commitment"`
}

type wireReview struct {
	DecisionID string `json:"decision_id"`
	Decision   string `json:"decision"`
	Reviewer   string `json:"reviewer"`
	Strength   string `json:"strength"`
	Why        string `json:"why"`
	Evidence   string `json:"evidence"`
	SeenSeq    int64  `json:"seen_seq"`
	SeenHash   string `json:"seen_hash"`
}

type wireRead struct {
	Kinds []string `json:"kinds"`
	Why   string   `json:"why"`
}

type wirePurge struct {
	KeptUS int64 `json:"kept_us"`
}

type wireApproval struct {
	ApprovalID   string `json:"approval_id"`
	Rule         string `json:"rule"`
	Binding      string `json:"binding_digest"`
	Nonce        string `json:"nonce"`
	ExpiresAt    string `json:"expires_at"`
	Needed       int    `json:"needed"`
	NotRequester bool   `json:"not_requester"`
}

// wireDecided is an approver's decision with all that was signed. Bytes are in base64url without padding.
type wireDecided struct {
	ApprovalID        string `json:"approval_id"`
	Binding           string `json:"binding_digest"`
	Nonce             string `json:"nonce"`
	ExpiresAt         string `json:"expires_at"`
	Decision          string `json:"decision"`
	Approver          string `json:"approver"`
	Strength          string `json:"approval_strength"`
	Via               string `json:"via"`
	Key               string `json:"key"`
	Signature         string `json:"signature"`
	AuthenticatorData string `json:"authenticator_data"`
	ClientData        string `json:"client_data"`
}

type wireVoid struct {
	ApprovalID string `json:"approval_id"`
	Why        string `json:"why"`
}

type wireRevocation struct {
	DecisionID string `json:"decision_id"`
	By         string `json:"by"`
	Strength   string `json:"strength"`
	What       string `json:"what"`
	Why        string `json:"why"`
}
