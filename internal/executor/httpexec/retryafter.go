package httpexec

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a target may ask for.
const maxRetryAfter = time.Hour

// retryAfter reads seconds or a date. What cannot be read, and what is over, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if value = strings.TrimSpace(value); value == "" {
		return 0
	}
	if digits(value) {
		seconds, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return maxRetryAfter
		}
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0
	}
	return min(at.Sub(now).Round(time.Second), maxRetryAfter)
}
