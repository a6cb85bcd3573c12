// Package eventlog turns an event into the members of its journal body, and a body back into the event.
//
//	action.Event ──Normal──▶ action.Event ──Body──▶ members ──journal.Encode──▶ bytes
//	                                ▲                                             │
//	                                └──────────────────Decode─────────────────────┘
//
// Both stores use it, so that one journal reads like another. It is pure, and it knows neither tables nor the order of
// records: the store that writes a record adds prev, seq and v.
//
// Two rules shape a body. An action's event names the resolved place (host, port, protocol) every time, since a line that
// says only "production" proves nothing. And it never names the tool or the arguments: those belong to the intent.
package eventlog
