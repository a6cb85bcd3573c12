package operator

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/audit"
)

// An export is as long as the journal, and an audit takes as long. Each write may take this long instead of the whole.
const perWrite = time.Minute

func (s *Server) getJournal(w http.ResponseWriter, r *http.Request, _ Desk) {
	span, err := spanOf(r)
	if s.o.Journal == nil || err != nil {
		s.answer(w, nil, s.noJournal(err))
		return
	}
	out := &steady{w: w, control: http.NewResponseController(w)}
	done, err := s.o.Journal.Export(context.WithoutCancel(r.Context()), out, span)
	switch {
	case err != nil && !out.begun:
		s.answer(w, nil, outside(err))
	case err != nil:
		s.o.Log.Error("an export broke off", "error", err)
		panic(http.ErrAbortHandler) // so that the reader does not take half of it for the whole
	case done.Bad != nil:
		s.o.Log.Error("the exported journal is damaged", "record", done.Bad.Sequence, "reason", done.Bad.Reason)
	}
}

// steady writes for as long as somebody reads.
type steady struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (s *steady) Write(p []byte) (int, error) {
	if !s.begun {
		s.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		s.w.Header().Set("Cache-Control", "no-store")
		s.begun = true
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(perWrite)) // where it cannot be set, the common one holds
	return s.w.Write(p)
}

// spanOf reads ?from= and ?to=, the numbers of the first and the last record.
func spanOf(r *http.Request) (span audit.Span, err error) {
	if text := r.URL.Query().Get("from"); text != "" {
		if span.From, err = strconv.ParseUint(text, 10, 63); err != nil {
			return span, errors.New("from is no record number")
		}
	}
	if text := r.URL.Query().Get("to"); text != "" {
		last, err := strconv.ParseUint(text, 10, 62)
		if err != nil {
			return span, errors.New("to is no record number")
		}
		span.End = last + 1
	}
	return span, nil
}

func (s *Server) noJournal(err error) error {
	if err == nil {
		err = errors.New("no journal is handed out here")
	}
	return action.Errorf(action.CodeInvalidArguments, "nothing was done: %s", err)
}

func (s *Server) getVerify(w http.ResponseWriter, r *http.Request, _ Desk) {
	if s.o.Journal == nil {
		s.answer(w, nil, s.noJournal(nil))
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // as long as it takes, unless the reader leaves
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	report, err := s.o.Journal.Verify(ctx)
	s.answer(w, report, err)
}

func (s *Server) getCheckpoint(w http.ResponseWriter, r *http.Request, _ Desk) {
	size := uint64(0)
	var err error
	if text := r.URL.Query().Get("size"); text != "" {
		if size, err = strconv.ParseUint(text, 10, 63); err != nil {
			err = errors.New("size is no number of records")
		}
	}
	if s.o.Journal == nil || err != nil {
		s.answer(w, nil, s.noJournal(err))
		return
	}
	signed, err := s.o.Journal.Checkpoint(r.Context(), size)
	s.plain(w, signed, outside(err))
}

// outside says in words that somebody asked for records which are not there.
func outside(err error) error {
	if errors.Is(err, audit.ErrOutside) {
		return action.Errorf(action.CodeInvalidArguments, "%s", err)
	}
	return err
}

func (s *Server) getReceipt(w http.ResponseWriter, r *http.Request, d Desk) {
	id := action.ID(r.PathValue("id"))
	if s.o.Journal == nil {
		s.answer(w, nil, s.noJournal(nil))
		return
	}
	if _, err := d.Show(r.Context(), id); err != nil {
		s.answer(w, nil, err)
		return
	}
	text, err := s.o.Journal.Receipt(r.Context(), id)
	s.plain(w, text, err)
}

func (s *Server) getKeys(w http.ResponseWriter, r *http.Request, _ Desk) {
	if s.o.Journal == nil {
		s.answer(w, nil, s.noJournal(nil))
		return
	}
	keys, err := s.o.Journal.Keys(r.Context())
	s.answer(w, keys, err)
}

func (s *Server) postRotate(w http.ResponseWriter, r *http.Request, d Desk) {
	if s.o.Journal == nil {
		s.answer(w, nil, s.noJournal(nil))
		return
	}
	rotated, err := s.o.Journal.Rotate(r.Context())
	if err == nil {
		s.o.Log.Info("the log has a new key", "by", d.By.String(), "key", rotated.New)
	}
	s.answer(w, rotated, err)
}

// plain answers with text that is no JSON.
func (s *Server) plain(w http.ResponseWriter, text []byte, err error) {
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text) //nolint:gosec // plain text, and no browser reaches this socket; whoever asked may have left
}
