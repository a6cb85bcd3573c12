package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
)

// verify checks an assertion by section 7.2 of Web Authentication, for a challenge that is the digest of a statement. The
// signature counter is advisory there, and passkeys that are synchronised have none.
func (k *Passkey) verify(challenge [32]byte, s Signed) error {
	var client struct {
		Type        string `json:"type"`
		Challenge   string `json:"challenge"`
		Origin      string `json:"origin"`
		CrossOrigin bool   `json:"crossOrigin"`
	}
	if err := json.Unmarshal(s.ClientData, &client); err != nil {
		return errors.New("the client data is no JSON")
	}
	var data protocol.AuthenticatorData
	if err := data.Unmarshal(s.AuthenticatorData); err != nil {
		return errors.New("the authenticator data cannot be read")
	}
	site := sha256.Sum256([]byte(k.RelyingParty))
	switch {
	case client.Type != "webauthn.get":
		return errors.New("it is not the answer to a request for a signature")
	case client.Challenge != base64.RawURLEncoding.EncodeToString(challenge[:]):
		return errors.New("something else was signed")
	case !slices.Contains(k.Origins, client.Origin):
		return errors.New("it was signed on another page")
	case client.CrossOrigin:
		return errors.New("it was signed inside the page of somebody else")
	case !bytes.Equal(data.RPIDHash, site[:]):
		return errors.New("it was signed for another site")
	case !data.Flags.UserPresent():
		return errors.New("nobody was there")
	case !data.Flags.UserVerified():
		return errors.New("nobody checked who was there")
	}
	public, err := webauthncose.ParsePublicKey(k.PublicKey)
	if err != nil {
		return errors.New("the public key cannot be read")
	}
	hash := sha256.Sum256(s.ClientData)
	signed := append(slices.Clone(s.AuthenticatorData), hash[:]...)
	if ok, err := webauthncose.VerifySignature(public, signed, s.Signature); err != nil || !ok {
		return errors.New("the signature does not fit the key")
	}
	return nil
}

func (k *Passkey) checkKey() error {
	if _, err := webauthncose.ParsePublicKey(k.PublicKey); err != nil {
		return errors.New("the public_key of a passkey is no COSE key that can be used")
	}
	return nil
}
