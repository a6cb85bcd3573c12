package operator

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"deed.dev/deed/internal/action"
)

// Problem is the body of every refusal.
type Problem struct {
	Code    action.Code `json:"code"`
	Message string      `json:"message"`
	Action  action.ID   `json:"action_id,omitempty"`
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request, Desk){
		"GET /v1/status":                s.getStatus,
		"GET /v1/review":                s.getList,
		"GET /v1/actions/{id}":          s.getAction,
		"POST /v1/actions/{id}/review":  s.postReview,
		"POST /v1/actions/{id}/undo":    s.postUndo,
		"GET /v1/journal":               s.getJournal,
		"GET /v1/journal/verify":        s.getVerify,
		"GET /v1/journal/checkpoint":    s.getCheckpoint,
		"GET /v1/journal/keys":          s.getKeys,
		"POST /v1/journal/keys/rotate":  s.postRotate,
		"GET /v1/actions/{id}/receipt":  s.getReceipt,
		"GET /metrics":                  s.getMetrics,
		"/":                             s.nothingHere,
		"POST /v1/actions/{id}/content": s.postContent,
		"POST /v1/content-key":          s.postContentKey,
		"GET /v1/vault":                 s.getVault,
		"POST /v1/vault/unlock":         s.postUnlock,
		"POST /v1/vault/reload":         s.postReload,
		"POST /v1/vault/lock":           s.postLock,
		"GET /v1/approvals":             s.getPending,
		"GET /v1/approvals/{id}":        s.getRequest,
		"POST /v1/approvals/{id}":       s.postApproval,
		"POST /v1/revoke":               s.postRevoke,
	} {
		mux.Handle(pattern, s.enter(handle))
	}
	return mux
}

func (s *Server) getStatus(w http.ResponseWriter, r *http.Request, d Desk) {
	status, err := d.Status(r.Context())
	s.answer(w, status, err)
}

func (s *Server) getList(w http.ResponseWriter, r *http.Request, d Desk) {
	all, err := d.List(r.Context())
	s.answer(w, all, err)
}

func (s *Server) getAction(w http.ResponseWriter, r *http.Request, d Desk) {
	c, err := d.Show(r.Context(), action.ID(r.PathValue("id")))
	s.answer(w, c, err)
}

func (s *Server) postReview(w http.ResponseWriter, r *http.Request, d Desk) {
	var asked Decision
	id := action.ID(r.PathValue("id"))
	if err := read(w, r, &asked); err != nil {
		s.answer(w, nil, action.Errorf(action.CodeInvalidArguments, "nothing was changed: the body is no decision: %s", err).About(id))
		return
	}
	status, err := d.Decide(r.Context(), id, asked)
	s.answer(w, status, err)
}

func (s *Server) postUndo(w http.ResponseWriter, r *http.Request, d Desk) {
	status, err := d.Undo(r.Context(), action.ID(r.PathValue("id")))
	s.answer(w, status, err)
}

func (s *Server) getPending(w http.ResponseWriter, r *http.Request, d Desk) {
	all, err := d.Pending(r.Context())
	s.answer(w, all, err)
}

func (s *Server) getRequest(w http.ResponseWriter, r *http.Request, d Desk) {
	found, err := d.Request(r.Context(), r.PathValue("id"))
	s.answer(w, found, err)
}

func (s *Server) postApproval(w http.ResponseWriter, r *http.Request, d Desk) {
	var said ApprovalDecision
	if err := read(w, r, &said); err != nil {
		s.answer(w, nil, action.Errorf(action.CodeInvalidArguments, "nothing was decided: the body is no signed decision: %s", err))
		return
	}
	status, err := d.Approve(r.Context(), action.DecisionID(r.PathValue("id")), said)
	s.answer(w, status, err)
}

func (s *Server) postRevoke(w http.ResponseWriter, r *http.Request, d Desk) {
	var asked Revoke
	if err := read(w, r, &asked); err != nil {
		s.answer(w, nil, action.Errorf(action.CodeInvalidArguments, "nothing was revoked: the body names nothing: %s", err))
		return
	}
	done, err := d.Revoke(r.Context(), asked)
	s.answer(w, done, err)
}

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request, _ Desk) {
	if s.o.Metrics == nil {
		s.nothingHere(w, r, Desk{})
		return
	}
	s.o.Metrics.ServeHTTP(w, r)
}

func (s *Server) nothingHere(w http.ResponseWriter, _ *http.Request, _ Desk) {
	write(w, http.StatusNotFound, Problem{Code: action.CodeInvalidArguments, Message: "there is nothing here; nothing was done"})
}

// read decodes one JSON value with no members but those that are known. Its errors hold nothing of the body's values.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return errors.New("it is larger than 1 MiB")
	case err != nil:
		return errors.New("it broke off")
	case !json.Valid(body):
		return errors.New("it is not one JSON value")
	}
	return strictly(body, into)
}

func (s *Server) answer(w http.ResponseWriter, value any, err error) {
	if err == nil {
		write(w, http.StatusOK, value)
		return
	}
	var known *action.Error
	if !errors.As(err, &known) {
		known = action.Errorf(action.CodeInternal, "deed has a fault of its own; look at its log").Because(err)
	}
	if known.Code == action.CodeInternal {
		s.o.Log.Error("a request of an operator failed", "action_id", known.Action, "error", known)
	}
	refuse(w, known)
}

func refuse(w http.ResponseWriter, e *action.Error) {
	write(w, statusOf(e.Code), Problem{Code: e.Code, Message: e.Message, Action: e.Action})
}

// statusOf is the table from code to HTTP status at this door.
func statusOf(code action.Code) int {
	switch code {
	case action.CodeInvalidArguments:
		return http.StatusBadRequest
	case action.CodeUnauthenticated:
		return http.StatusForbidden
	case action.CodeNoSuchAction:
		return http.StatusNotFound
	case action.CodeContentErased:
		return http.StatusGone
	case action.CodeOverloaded, action.CodeJournalUnavailable, action.CodeVaultLocked:
		return http.StatusServiceUnavailable
	case action.CodeInternal:
		return http.StatusInternalServerError
	default:
		return http.StatusConflict
	}
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // whoever asked has left
}
