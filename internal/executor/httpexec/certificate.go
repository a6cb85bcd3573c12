package httpexec

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"

	"deed.dev/deed/internal/vault"
)

// certificateOf is the certificate that the credential shows in the handshake, if it is one that does so. It is seen by
// the one host that is dialled for it.
func certificateOf(opened *vault.Opened) (*tls.Certificate, bool) {
	if opened == nil {
		return nil, false
	}
	pair, ok := opened.Certificate()
	if !ok {
		return nil, false
	}
	return &pair, true
}

// fingerprintOf tells connections apart on which different certificates were shown: a rotated one gets a new connection.
func fingerprintOf(c *tls.Certificate) string {
	sum := sha256.Sum256(c.Certificate[0])
	return hex.EncodeToString(sum[:])
}
