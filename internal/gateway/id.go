package gateway

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/google/uuid"
)

// crockford is base 32 without letters that are misread; it sorts like the number it stands for.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// newID makes an identifier of the kind that prefix names: a UUID of version 7, so that identifiers sort by time.
func newID(prefix string) string {
	u := uuid.Must(uuid.NewV7()) // fails only when the system has no randomness left
	return prefix + base32(u)
}

// newToken makes a value that nobody can guess: 128 random bits and no time.
func newToken(prefix string) string {
	var b [16]byte
	randomBytes(b[:])
	return prefix + base32(b)
}

func newTraceID() string { return randomHex(16) }
func newSpanID() string  { return randomHex(8) }

func randomHex(n int) string {
	b := make([]byte, n)
	randomBytes(b)
	return hex.EncodeToString(b)
}

// randomBytes fills b. crypto/rand never fails: the program ends when the system has no randomness.
func randomBytes(b []byte) { _, _ = rand.Read(b) }

// base32 writes 128 bits as 26 characters.
func base32(b [16]byte) string {
	out := make([]byte, 26)
	var acc uint32
	bits, pos := 2, 0 // two leading zero bits make 130, a multiple of five
	for _, c := range b {
		acc = acc<<8 | uint32(c)
		bits += 8
		for bits >= 5 {
			bits -= 5
			out[pos] = crockford[acc>>bits&31]
			pos++
		}
	}
	return string(out)
}
