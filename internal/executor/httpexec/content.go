package httpexec

import (
	"bytes"
	"mime"
	"strings"
)

func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil || len(t) > maxKept {
		return ""
	}
	return t
}

// identity reports whether a body came as it is. Another one cannot be searched for secrets.
func identity(encodings []string) bool {
	for _, e := range encodings {
		for part := range strings.SplitSeq(e, ",") {
			if p := strings.TrimSpace(part); p != "" && !strings.EqualFold(p, "identity") {
				return false
			}
		}
	}
	return true
}

// searchable reports whether a secret in the body would stand there in its own bytes. A text in UTF-16 has other ones.
func searchable(got exchanged) bool {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "\x00\x00\xfe\xff"} {
		if bytes.HasPrefix(got.body, []byte(mark)) {
			return false
		}
	}
	_, parameters, err := mime.ParseMediaType(got.resp.Header.Get("Content-Type"))
	if err != nil {
		return true
	}
	charset := strings.ToLower(parameters["charset"])
	for _, family := range []string{"", "utf-8", "utf8", "us-ascii", "ascii"} {
		if charset == family {
			return true
		}
	}
	return strings.HasPrefix(charset, "iso-8859-") || strings.HasPrefix(charset, "windows-125")
}
