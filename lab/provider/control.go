package provider

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// controlHandler lets another process set the switches and read what was seen.
//
//	GET, PUT /_control/switches
//	GET      /_control/ledger?at_least=N      waits until there are N rows
//	GET      /_control/requests?at_least=N    waits until there are N requests
func (s *Server) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_control/switches", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, s.Switches())
	})
	mux.HandleFunc("PUT /_control/switches", func(w http.ResponseWriter, r *http.Request) {
		var switches Switches
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = json.Unmarshal(body, &switches)
		}
		if err == nil {
			err = s.Set(switches)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, s.Switches())
	})
	mux.HandleFunc("GET /_control/ledger", func(w http.ResponseWriter, r *http.Request) {
		serveList(s, w, r, s.Effects)
	})
	mux.HandleFunc("GET /_control/requests", func(w http.ResponseWriter, r *http.Request) {
		serveList(s, w, r, s.Requests)
	})
	return mux
}

// serveList answers with the list once it is as long as the caller asks.
func serveList[T any](s *Server, w http.ResponseWriter, r *http.Request, list func() []T) {
	least := 0
	if wanted := r.URL.Query().Get("at_least"); wanted != "" {
		var err error
		if least, err = strconv.Atoi(wanted); err != nil {
			http.Error(w, "at_least is a number", http.StatusBadRequest)
			return
		}
	}
	(&exchange{w: w}).liftDeadlines()
	if err := s.Await(r.Context(), func() bool { return len(list()) >= least }); err != nil {
		panic(http.ErrAbortHandler) // the client has left, or the provider is closing
	}
	writeJSON(w, append([]T{}, list()...))
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(encode(value), '\n')) // the client may have left
}
