package audit

import (
	"context"
	"encoding/json"
	"fmt"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/journal"
)

// Events finds the events of one action.
type Events interface {
	// Place gives the journal place of the newest event about an action.
	Place(ctx context.Context, id action.ID) (seq int64, hash string, err error)
	// EventsOf gives the journal bodies about an action, and perhaps others, in order.
	EventsOf(ctx context.Context, id action.ID) ([][]byte, error)
}

// Receipt makes the receipt of an action as it stands: its events, and the proof that they are in a journal of which the log
// has signed the head. That checkpoint is remembered like any other.
func (l *Log) Receipt(ctx context.Context, events Events, id action.ID) ([]byte, error) {
	_, newest, err := events.Place(ctx, id)
	if err != nil {
		return nil, err
	}
	bodies, err := events.EventsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	chain, err := linked(bodies, newest)
	if err != nil {
		return nil, fmt.Errorf("the events of %s: %w", id, err)
	}
	head, err := l.Keep(ctx)
	if err != nil {
		return nil, err
	}
	return journal.MakeReceipt(chain, l.records.Tree(ctx), head.Signed)
}

// linked follows the events of one action back from the newest.
func linked(bodies [][]byte, newest string) (chain [][]byte, err error) {
	byHash := make(map[string][]byte, len(bodies))
	for _, body := range bodies {
		byHash[journal.LeafHash(body).String()] = body
	}
	for next := newest; next != ""; {
		body, ok := byHash[next]
		if !ok {
			return nil, fmt.Errorf("there is none with the hash %s", next)
		}
		delete(byHash, next) // so that a circle ends
		chain = append(chain, body)
		var link struct {
			After string `json:"after"`
		}
		if err := json.Unmarshal(body, &link); err != nil {
			return nil, err
		}
		next = link.After
	}
	return chain, nil
}
