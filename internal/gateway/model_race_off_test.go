//go:build !race

package gateway_test

const (
	modelGroups = 10   // of as many histories as -rapid.checks says, 100 if nothing does
	modelCovers = true // every kind of move has to be met
)
