// Package action holds the nouns and the rules of deed: call, run, intent, action, attempt, operation, outcome, the
// states they pass through, the events that record them, and the rule that recognises a repeat.
//
// It is pure. Values and a time go in, values come out: it reads no clock, makes no identifier, opens no connection and
// knows no database, no protocol and no contract language. Everything else in deed is arranged around it.
package action
