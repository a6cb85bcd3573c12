package journal

import (
	"errors"
	"time"
)

// timeLayout has microseconds, because they survive Python, SQL and JavaScript.
// Nanoseconds do not.
const timeLayout = "2006-01-02T15:04:05.000000Z"

var errTime = errors.New("not a time of the form " + timeLayout)

// FormatTime writes a time as records hold it. What is finer than a microsecond is
// cut off.
func FormatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// ParseTime reads what FormatTime writes, and nothing else.
func ParseTime(s string) (time.Time, error) {
	t, ok := parseTime(s)
	if !ok {
		return time.Time{}, errTime
	}
	return t, nil
}

// parseTime is written by hand since time.Parse lets other forms through, such as a
// comma before the decimals, and since a verifier reads one time per record.
func parseTime[text string | []byte](s text) (t time.Time, ok bool) {
	if len(s) != len(timeLayout) {
		return t, false
	}
	for i := range len(timeLayout) {
		isDigit := s[i] >= '0' && s[i] <= '9'
		wantDigit := timeLayout[i] >= '0' && timeLayout[i] <= '9'
		if isDigit != wantDigit || !wantDigit && s[i] != timeLayout[i] {
			return t, false
		}
	}
	number := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			n = 10*n + int(s[i]-'0')
		}
		return n
	}
	year, month, day := number(0, 4), time.Month(number(5, 7)), number(8, 10)
	hour, minute, second := number(11, 13), number(14, 16), number(17, 19)
	if year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	return time.Date(year, month, day, hour, minute, second, 1000*number(20, 26), time.UTC), true
}

func daysIn(year int, month time.Month) int {
	switch month {
	case time.April, time.June, time.September, time.November:
		return 30
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
