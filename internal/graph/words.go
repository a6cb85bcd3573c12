package graph

import (
	"fmt"
	"strings"
	"unicode"
)

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// numbered names one of several things, and the only one without a number.
func numbered(noun string, i, of int) string {
	if of == 1 {
		return noun
	}
	return fmt.Sprintf("%s %d,", noun, i+1)
}

// were begins a sentence about several things that something was done to.
func were(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return fmt.Sprintf("%d %ss were", n, noun)
}

// printable keeps what a caller wrote, such as the id of its request, from moving the cursor or ending the line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
