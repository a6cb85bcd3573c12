//go:build race

package gateway_test

import "flag"

// With the race detector a history takes ten times as long, and it is the races that are looked for.
const (
	modelGroups = 1
	modelCovers = false
)

func init() { _ = flag.Set("rapid.checks", "20") }
