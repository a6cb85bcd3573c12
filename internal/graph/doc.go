// Package graph is the read side: what the journal alone says of actions and their causes.
//
//	records ──Read──▶ Journal ──Investigate──▶ Report ──Print──▶ text
//	(twice)           what concerns the        five answers,
//	                  asked actions            a conclusion, what is not known
//
// It knows no database, no gateway and no target, and it reads no row that was made from the journal: whoever holds an
// export gets the same report as the gateway's operator. It guesses nothing. Two actions are said to belong together only
// where an event says so; that they are equal is a resemblance.
package graph
