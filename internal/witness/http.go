package witness

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Path is where a witness is asked, after its URL.
const Path = "/add-checkpoint"

// sizeType is the media type of the answer to a log that takes the witness to be somewhere else.
const sizeType = "text/x.tlog.size"

// Handler serves the protocol. There is no authentication in it beyond the log's own signature.
func (w *Witness) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, w.serveAddCheckpoint)
	return mux
}

// Server bounds what a caller may cost: sizes, and how long it may take to ask and to listen.
func (w *Witness) Server() *http.Server {
	return &http.Server{
		Handler: w.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
}

func (w *Witness) serveAddCheckpoint(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, MaxRequest))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(rw, fmt.Sprintf("a request has at most %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(rw, "the request could not be read", http.StatusBadRequest)
		return
	}
	line, err := w.AddCheckpoint(r.Context(), body)
	if err != nil {
		w.refuse(rw, err)
		return
	}
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = rw.Write(line)
}

func (w *Witness) refuse(rw http.ResponseWriter, err error) {
	var conflict *ConflictError
	switch {
	case errors.As(err, &conflict):
		rw.Header().Set("Content-Type", sizeType)
		rw.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(rw, "%d\n", conflict.Size)
	case errors.Is(err, ErrMalformed), errors.Is(err, ErrShrinks):
		http.Error(rw, err.Error(), http.StatusBadRequest)
	case errors.Is(err, ErrUnsigned):
		http.Error(rw, err.Error(), http.StatusForbidden)
	case errors.Is(err, ErrUnknown):
		http.Error(rw, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrProof):
		http.Error(rw, err.Error(), http.StatusUnprocessableEntity)
	default:
		w.log.Error("nothing was cosigned", "error", err)
		http.Error(rw, "the witness could not remember the checkpoint, so it was not cosigned", http.StatusInternalServerError)
	}
}
