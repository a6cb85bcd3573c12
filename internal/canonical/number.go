package canonical

import (
	"math"
	"strconv"
	"strings"
)

// Number is a JSON number in canonical text form. The text keeps every digit of a
// 64-bit integer, which a float64 would not.
type Number string

// Int64 returns the number when it is an integer in the range of int64.
func (n Number) Int64() (int64, bool) {
	i, err := strconv.ParseInt(string(n), 10, 64)
	return i, err == nil
}

// Uint64 returns the number when it is an integer in the range of uint64.
func (n Number) Uint64() (uint64, bool) {
	u, err := strconv.ParseUint(string(n), 10, 64)
	return u, err == nil
}

// Float64 returns the nearest double. It is not exact for integers beyond 2^53.
func (n Number) Float64() float64 {
	f, _ := strconv.ParseFloat(string(n), 64)
	return f
}

const (
	// maxLiteral bounds the text of one number. No writer needs more, and
	// strconv.ParseFloat cuts exponents above 10,000 short, which a literal with
	// thousands of zeros could use to be read as another number.
	maxLiteral = 1024

	twoTo53 = 1 << 53

	msgIntegerRange = "integer outside the 64-bit range"
	msgCannotHold   = "number that a double cannot hold"
)

// canonicalNumber returns the canonical text of a JSON number literal, or the
// reason why it is refused.
func canonicalNumber(literal string) (text, refusal string) {
	if len(literal) > maxLiteral {
		return "", "number with too many characters"
	}
	if !strings.ContainsAny(literal, ".eE") {
		return canonicalInteger(literal)
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return "", msgCannotHold // overflow: the syntax was checked before
	}
	if f == 0 {
		if mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e"); strings.ContainsAny(mantissa, "123456789") {
			return "", msgCannotHold // underflow
		}
		return "0", ""
	}
	text, refusal = canonicalFloat(f)
	// From 2^53 on rounding moves a number by whole units, so that two order
	// numbers could become one. There the text must say what the literal said.
	if refusal == "" && math.Abs(f) >= twoTo53 && !sameDecimal(text, literal) {
		return "", msgCannotHold
	}
	return text, refusal
}

func canonicalInteger(literal string) (text, refusal string) {
	if literal == "-0" {
		return "0", ""
	}
	var err error
	if literal[0] == '-' {
		_, err = strconv.ParseInt(literal, 10, 64)
	} else {
		_, err = strconv.ParseUint(literal, 10, 64)
	}
	if err != nil {
		return "", msgIntegerRange
	}
	return literal, ""
}

// canonicalFloat writes a double as ECMAScript does. From 2^53 to 10^21 that would
// be an integer whose last digits may be zeros instead of the true ones, so there
// the exact digits are written, and only inside the 64-bit range: what this
// function writes must be read back as the same number.
func canonicalFloat(f float64) (text, refusal string) {
	abs := math.Abs(f)
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return "", msgCannotHold
	case f == 0:
		return "0", ""
	case abs >= twoTo53 && abs < 1e21:
		if f >= math.MaxUint64 || f < math.MinInt64 {
			return "", msgIntegerRange
		}
		return strconv.FormatFloat(f, 'f', 0, 64), ""
	case abs < 1e-6 || abs >= 1e21:
		text = strconv.FormatFloat(f, 'e', -1, 64)
		// Go writes at least two digits of exponent, ECMAScript as few as it can.
		if n := len(text); text[n-2] == '0' && (text[n-3] == '-' || text[n-3] == '+') {
			text = text[:n-2] + text[n-1:]
		}
		return text, ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64), ""
}

// sameDecimal says whether two number literals denote the same number.
func sameDecimal(a, b string) bool {
	aNegative, aDigits, aExponent := decimal(a)
	bNegative, bDigits, bExponent := decimal(b)
	return aNegative == bNegative && aDigits == bDigits && aExponent == bExponent
}

// decimal takes a literal apart: 0.digits × 10^exponent, digits without zeros at
// either end.
func decimal(literal string) (negative bool, digits string, exponent int) {
	literal, negative = strings.CutPrefix(strings.ToLower(literal), "-")
	mantissa, exp, _ := strings.Cut(literal, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if exp != "" {
		exponent, _ = strconv.Atoi(exp) // only doubles come here, so it is small
	}
	exponent += len(whole)
	digits = whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(trimmed)
	return negative, strings.TrimRight(trimmed, "0"), exponent
}

// isNumber says whether text is a number by the grammar of JSON.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	rest := strings.TrimLeft(text, "0123456789")
	whole := text[:len(text)-len(rest)]
	if whole == "" || (whole[0] == '0' && whole != "0") {
		return false
	}
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		rest = strings.TrimLeft(fraction, "0123456789")
		if rest == fraction {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && strings.Trim(rest, "0123456789") == ""
}
