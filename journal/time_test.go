package journal

import (
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
)

func drawTime(t *rapid.T) time.Time {
	zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
	return time.Unix(rapid.Int64Range(earliest, latest).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond")).In(zone)
}

// TR-34: every time is written in one form, and read back as the same microsecond by
// this package and by the standard library.
func TestEveryTimeHasOneForm(t *testing.T) {
	form := regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$`)
	rapid.Check(t, func(t *rapid.T) {
		at := drawTime(t)
		text := FormatTime(at)
		if !form.MatchString(text) {
			t.Fatalf("got %s, want UTC with six decimals", text)
		}
		want := time.Unix(at.Unix(), int64(at.Nanosecond()/1000*1000)).UTC()
		got, err := ParseTime(text)
		if err != nil || got != want {
			t.Fatalf("parse %s: got %v, %v, want %v", text, got, err, want)
		}
		if other, err := time.Parse(time.RFC3339Nano, text); err != nil || !other.Equal(want) {
			t.Fatalf("time.Parse %s: got %v, %v, want %v", text, other, err, want)
		}
	})
}

// TR-34: other forms are refused at write, and by the verifier. What is accepted is
// exactly what FormatTime writes of the time that it denotes.
func TestOtherFormsOfTimeAreRefused(t *testing.T) {
	forms := []string{time.RFC3339, time.RFC3339Nano, time.RFC1123, time.DateTime, time.UnixDate, "2006-01-02T15:04:05.000Z",
		"2006-01-02T15:04:05.000000000Z", "2006-01-02T15:04:05,000000Z", "2006-01-02T15:04:05.000000-07:00", "2006-01-02t15:04:05.000000z"}
	rapid.Check(t, func(t *rapid.T) {
		at := drawTime(t)
		text := at.Format(rapid.SampledFrom(forms).Draw(t, "form"))
		if rapid.Bool().Draw(t, "damage") { // one character of the right form replaced
			bytes := []byte(FormatTime(at))
			bytes[rapid.IntRange(0, len(bytes)-1).Draw(t, "place")] = rapid.SampledFrom([]byte("0123456789-+T:.Zz ,")).Draw(t, "character")
			text = string(bytes)
		}
		parsed, err := ParseTime(text)
		right := err == nil && FormatTime(parsed) == text
		if err == nil && !right {
			t.Fatalf("%s was accepted as %s", text, FormatTime(parsed))
		}
		if other, err := time.Parse(timeLayout, text); !right && err == nil && other.Year() > 0 && FormatTime(other) == text {
			t.Fatalf("%s was refused", text)
		}
		_, err = Encode(linked(map[string]any{"time": text}))
		if (err == nil) != right {
			t.Fatalf("encode %s: got %v, want accepted %t", text, err, right)
		}
		body := `{"prev":"` + Hash{}.String() + `","seq":1,"time":"` + text + `","v":1}`
		if err := CheckProfile([]byte(body)); (err == nil) != right {
			t.Fatalf("check %s: got %v, want accepted %t", text, err, right)
		}
	})
}
