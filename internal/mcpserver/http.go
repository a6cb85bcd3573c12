package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"deed.dev/deed/internal/action"
)

// maxBody bounds one HTTP request: the largest arguments that a contract accepts, and their envelope.
const maxBody = 2 << 20

// authenticated admits holders of a token. It says nothing about why a token was not good.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		actor, err := action.Actor{}, error(nil)
		if ok {
			actor, err = s.o.Authenticate(strings.TrimSpace(bearer), time.Now())
		}
		if !ok || err != nil || !actor.Verified() {
			w.Header().Set("WWW-Authenticate", `Bearer realm="deed"`)
			refuse(w, http.StatusUnauthorized, "a token made by `deed token create` is needed; nothing was done")
			return
		}
		r = r.Clone(r.Context())
		r.Header.Del("Authorization") // nothing behind this line needs it
		r.Header.Del(exchangeHeader)
		next.ServeHTTP(w, r.WithContext(withActor(r.Context(), actor)))
	})
}

// observed notes the protocol's numbers of a request before the SDK consumes it, and what became of its answer.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				refuse(w, http.StatusRequestEntityTooLarge, "the request is larger than 2 MiB; nothing was done")
				return
			}
			refuse(w, http.StatusBadRequest, "the request broke off; nothing was done")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		e := &exchange{
			actor: actorOf(r.Context()), protocol: correlation(r, body), header: r.Header.Clone(), verified: true, gone: r.Context(),
		}
		name := s.exchanges.add(e)
		defer s.exchanges.remove(name)
		r.Header.Set(exchangeHeader, name)
		watched := &watchedWriter{ResponseWriter: w}
		next.ServeHTTP(watched, r)
		s.handedOver(e, watched.failed || r.Context().Err() != nil)
	})
}

// handedOver records whether an answer could be written. That it could proves nothing about its arrival.
func (s *Server) handedOver(e *exchange, failed bool) {
	id := e.answeredWith()
	switch {
	case id == "":
	case failed:
		s.o.Gateway.Delivered(id, action.DeliveryInterrupted, "caller_left")
	default:
		s.o.Gateway.Delivered(id, action.DeliveryUnconfirmed, "handed_over")
	}
}

// correlation reads what the protocol says about a message. An unreadable one has no numbers; the SDK will refuse it.
func correlation(r *http.Request, body []byte) action.Correlation {
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(body, &message)
	c := action.Correlation{
		Transport: "mcp-http", Era: r.Header.Get("MCP-Protocol-Version"), RequestID: bounded(string(message.ID)),
		Session: r.Header.Get("Mcp-Session-Id"), Client: bounded(r.UserAgent()),
	}
	if c.Session == "" {
		c.Session = action.NoSession
	}
	return c
}

// bounded keeps a foreign value small. It is shown and never compared.
func bounded(s string) string {
	const most = 128
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// watchedWriter remembers that a write failed.
type watchedWriter struct {
	http.ResponseWriter
	failed bool
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.failed = w.failed || err != nil
	return n, err
}

// Unwrap lets the SDK flush.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is buffered, for streams.
func (w *watchedWriter) Flush() {
	if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
		w.failed = true
	}
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": -32600, "message": message},
	})
}
