package contract

import "strings"

// nearest finds the name that was probably meant: the one that needs the fewest changes, if those are few.
func nearest(name string, names []string) string {
	best, fewest := "", 1+len(name)/4
	for _, n := range names {
		if d := distance(strings.ToLower(name), n); d <= fewest && (best == "" || d < fewest) {
			best, fewest = n, d
		}
	}
	return best
}

// distance counts the letters to insert, drop or change.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
