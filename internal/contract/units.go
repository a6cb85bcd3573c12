package contract

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	day = 24 * time.Hour
	// longest bounds every time in a contract.
	longest = 3650 * day
)

var (
	durationForm = regexp.MustCompile(`^(?:[0-9]{1,9}(?:ms|s|m|h|d))+$`)
	durationPart = regexp.MustCompile(`([0-9]+)(ms|s|m|h|d)`)
	sizeForm     = regexp.MustCompile(`^([0-9]{1,9})(B|KiB|MiB)?$`)
)

var units = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": day}

// parseDuration reads 250ms, 30s, 15m, 1h30m and 30d.
func parseDuration(s string) (time.Duration, error) {
	if !durationForm.MatchString(s) {
		return 0, fmt.Errorf("%q is no length of time", s)
	}
	var sum time.Duration
	for _, m := range durationPart.FindAllStringSubmatch(s, -1) {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		if unit := units[m[2]]; n > int64(longest/unit) {
			return 0, fmt.Errorf("%q is more than 3650d", s)
		}
		if sum += time.Duration(n) * units[m[2]]; sum > longest {
			return 0, fmt.Errorf("%q is more than 3650d", s)
		}
	}
	return sum, nil
}

// formatDuration writes a length of time as contracts do: 30d, 1h30m, 250ms.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, unit := range []string{"d", "h", "m", "s", "ms"} {
		if n := d / units[unit]; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit)
			d -= n * units[unit]
		}
	}
	return b.String()
}

// duration reads an optional length of time within bounds. A value outside of them is refused, never moved inside.
func (f *faults) duration(path, s string, fallback, least, most time.Duration) time.Duration {
	if s == "" {
		return fallback
	}
	d, err := parseDuration(s)
	allowed := fmt.Sprintf("write a length of time from %s to %s, such as 30s, 15m, 24h or 30d",
		formatDuration(least), formatDuration(most))
	switch {
	case err != nil:
		f.add(path, err.Error(), allowed)
	case d < least || d > most:
		f.add(path, fmt.Sprintf("%s is outside the allowed range", s), allowed)
	default:
		return d
	}
	return fallback
}

const (
	leastResponse   = 1 << 10
	mostResponse    = 64 << 20
	defaultResponse = 1 << 20
)

// size reads a number of bytes: 4096, 64KiB, 1MiB.
func (f *faults) size(path, s string) int64 {
	if s == "" {
		return defaultResponse
	}
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		f.add(path, fmt.Sprintf("%q is no size", s), "write a size such as 64KiB or 1MiB")
		return defaultResponse
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	n *= map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[m[2]]
	if n < leastResponse || n > mostResponse {
		f.add(path, fmt.Sprintf("%s is outside the allowed range", s), "write a size from 1KiB to 64MiB")
		return defaultResponse
	}
	return n
}
