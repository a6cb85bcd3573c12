package mcpserver

import (
	"context"
	"strconv"
	"sync"

	"deed.dev/deed/internal/action"
)

// exchange is one request on its way through the SDK. The SDK hands a tool handler neither the JSON-RPC id nor the life of
// a legacy request, so the door keeps them here and passes a name for them along in a header of its own.
type exchange struct {
	actor    action.Actor
	protocol action.Correlation
	header   map[string][]string // of the HTTP request; nil on a stream
	verified bool                // the peer is authenticated, so that its trace context is believed
	gone     context.Context     // ends when the peer has left

	mu       sync.Mutex
	answered []action.ID // the actions whose answers are on their way to the peer; a batch has several
}

func (e *exchange) answer(id action.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answered = append(e.answered, id)
}

func (e *exchange) answeredWith() []action.ID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.answered
}

// exchangeHeader carries an exchange's name through the SDK. What a client sends under this name is removed.
const exchangeHeader = "Dev-Deed-Exchange"

// exchanges are the requests under way, by name.
type exchanges struct {
	mu   sync.Mutex
	next uint64
	open map[string]*exchange
}

func (s *exchanges) add(e *exchange) (name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	name = "x" + strconv.FormatUint(s.next, 10)
	s.open[name] = e
	return name
}

func (s *exchanges) find(name string) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[name]
}

func (s *exchanges) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, name)
}
