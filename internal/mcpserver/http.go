package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/identity"
)

// maxBody bounds one HTTP request: the largest arguments that a contract accepts, and their envelope.
const maxBody = 2 << 20

// slowest is how long a caller may take to send one request.
const slowest = 30 * time.Second

// authenticated admits holders of a token. It says nothing about why a token was not good.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A caller that sends slowly does not hold a connection for ever; a call may take longer than its request.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(slowest))
		bearer, err := identity.Bearer(r.Header)
		var actor action.Actor
		if err == nil {
			actor, err = s.o.Authenticate(bearer, time.Now())
		}
		if err != nil || !actor.Verified() {
			w.Header().Set("WWW-Authenticate", `Bearer realm="deed"`)
			refuse(w, http.StatusUnauthorized, "a token made by `deed token create` is needed; nothing was done")
			return
		}
		r = r.Clone(r.Context())
		r.Header.Del(exchangeHeader)
		next.ServeHTTP(w, r.WithContext(withActor(r.Context(), actor)))
	})
}

// observed notes the protocol's numbers of a request before the SDK consumes it, and what became of its answer.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
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
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
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

// handedOver records whether answers could be written. That they could proves nothing about their arrival.
func (s *Server) handedOver(e *exchange, failed bool) {
	to, why := action.DeliveryUnconfirmed, "handed_over"
	if failed {
		to, why = action.DeliveryInterrupted, "caller_left"
	}
	for _, id := range e.answeredWith() {
		s.o.Gateway.Delivered(id, to, why)
	}
}

// correlation reads what the protocol says about a message. An unreadable one has no numbers; the SDK will refuse it.
func correlation(r *http.Request, body []byte) action.Correlation {
	var message struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(body, &message)
	c := action.Correlation{
		Transport: "mcp-http", Era: bounded(r.Header.Get("MCP-Protocol-Version")), RequestID: bounded(string(message.ID)),
		Session: action.NoSession, Client: bounded(r.UserAgent()),
	}
	if id := r.Header.Get("Mcp-Session-Id"); id != "" { // whoever knows a session's id may speak in it: the record has its digest
		sum := sha256.Sum256([]byte(id))
		c.Session = "sha256:" + hex.EncodeToString(sum[:8])
	}
	return c
}

// bound ties a session to the actor who opened it: the SDK then refuses a request of anybody else in it.
func bound(next http.Handler) http.Handler {
	identify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: actorOf(ctx).String()}, nil
	}
	return auth.RequireBearerToken(identify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Authorization") // nothing behind this line needs it
			next.ServeHTTP(w, r)
		}))
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
