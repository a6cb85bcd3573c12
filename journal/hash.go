package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Hash is a SHA-256 digest: of a record, or of a node of the Merkle tree. The zero
// Hash is what record 0 names as its predecessor.
type Hash [sha256.Size]byte

const hexSize = 2 * sha256.Size

// String returns 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

var errHash = errors.New("not a hash of 64 lower-case hex digits")

// ParseHash reads what String writes, and nothing else.
func ParseHash(s string) (Hash, error) {
	h, ok := parseHash(s)
	if !ok {
		return Hash{}, errHash
	}
	return h, nil
}

func parseHash[text string | []byte](s text) (h Hash, ok bool) {
	if len(s) != hexSize {
		return h, false
	}
	for i := range h {
		high, low := hexDigit[s[2*i]], hexDigit[s[2*i+1]]
		if high|low > 15 {
			return Hash{}, false
		}
		h[i] = high<<4 | low
	}
	return h, true
}

// hexDigit holds the value of each lower-case hex digit, and 255 for other bytes.
var hexDigit = func() (value [256]byte) {
	for i := range value {
		value[i] = 255
	}
	for i := range byte(16) {
		value["0123456789abcdef"[i]] = i
	}
	return value
}()

// The first byte keeps leaves and nodes of the tree apart (RFC 6962 section 2.1).
const (
	leafPrefix = 0
	nodePrefix = 1
)

// LeafHash returns SHA-256(0x00 || body), which is the hash of the record with that
// body and its leaf in the tree.
func LeafHash(body []byte) Hash {
	digest := sha256.New()
	digest.Write([]byte{leafPrefix})
	digest.Write(body)
	return Hash(digest.Sum(nil))
}

func nodeHash(left, right Hash) Hash {
	var node [1 + 2*sha256.Size]byte
	node[0] = nodePrefix
	copy(node[1:], left[:])
	copy(node[1+sha256.Size:], right[:])
	return sha256.Sum256(node[:])
}
