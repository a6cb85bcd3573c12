//go:build race

package journal

// raceEnabled lets tests with very many trials take a sample under the race
// detector, which makes them ten times slower.
const raceEnabled = true
