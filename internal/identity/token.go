package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"net/http"
	"strings"
)

// A token is "deed_", 32 random bytes in base64url, and a checksum of what stands before it, so that a scanner for
// leaked secrets can recognise one and be sure:
//
//	deed_[A-Za-z0-9_-]{49}
const (
	tokenPrefix = "deed_"
	secretChars = 43
	sumChars    = 6
)

func newToken() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails: the program ends when the system has no randomness
	body := tokenPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	return body + checksum(body)
}

// looksLikeToken reports whether s has the form of a token. It proves nothing else.
func looksLikeToken(s string) bool {
	if !strings.HasPrefix(s, tokenPrefix) || len(s) != len(tokenPrefix)+secretChars+sumChars {
		return false
	}
	body := s[:len(s)-sumChars]
	return checksum(body) == s[len(body):]
}

func checksum(body string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body)))
	return base64.RawURLEncoding.EncodeToString(sum)
}

// digestOfToken is the only form in which a token is kept. Its 256 random bits need no salt and no slow hash.
func digestOfToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ErrNoBearer means that a request carries no usable Authorization header.
var ErrNoBearer = errors.New("no bearer token was sent; send one Authorization header: Bearer deed_…")

// Bearer takes the token from the headers of a request. Two Authorization headers are refused: what reads the other one
// would see another caller. A refusal is an *action.Error that wraps ErrNoBearer.
func Bearer(header http.Header) (string, error) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", unauthenticated(ErrNoBearer)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", unauthenticated(ErrNoBearer)
	}
	return token, nil
}
