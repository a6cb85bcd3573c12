package approval

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/crypto/ssh"
)

// A Policy names who may decide, and by which keys they are known. Whoever can write it can approve: it belongs to a
// user that no agent runs as.
type Policy struct {
	Approvers []Approver
}

// An Approver is a person, as far as keys can tell.
type Approver struct {
	Name   string
	Keys   []Key
	Actors []string // principals that ask in this person's name, as records show them: "token:ada-agent"
}

// ActsAs reports whether what the principal asks for is asked in the approver's own name.
func (a Approver) ActsAs(actor string) bool { return slices.Contains(a.Actors, actor) }

// Key is one way in which an approver signs. Either CLI or Passkey is there.
type Key struct {
	CLI     ed25519.PublicKey
	Passkey *Passkey
}

// Passkey is a credential that an authenticator keeps for one site.
type Passkey struct {
	ID           []byte
	PublicKey    []byte // COSE_Key
	RelyingParty string // a host name; the authenticator signs for it alone
	Origins      []string
}

// policyFile is how a policy is written:
//
//	approvers:
//	  - name: NAME
//	    keys:
//	      - ssh-ed25519 AAAA…
//	    actors: ["token:NAMES-AGENT", "process:uid=1000 exe=/usr/bin/agent"]
//	    passkeys:
//	      - {id: BASE64URL, public_key: BASE64URL, rp: localhost, origins: ["http://localhost:7433"]}
type policyFile struct {
	Approvers []struct {
		Name     string   `yaml:"name"`
		Keys     []string `yaml:"keys,omitempty"`
		Actors   []string `yaml:"actors,omitempty"`
		Passkeys []struct {
			ID        string   `yaml:"id"`
			PublicKey string   `yaml:"public_key"`
			RP        string   `yaml:"rp"`
			Origins   []string `yaml:"origins"`
		} `yaml:"passkeys,omitempty"`
	} `yaml:"approvers"`
}

// ParsePolicy reads a policy. What it does not know it refuses, and no key stands for two approvers.
func ParsePolicy(text []byte) (*Policy, error) {
	var file policyFile
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(&file)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("approvers: %s", strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	p := new(Policy)
	seen := map[string]string{} // whose key it is
	for _, a := range file.Approvers {
		approver := Approver{Name: a.Name, Actors: a.Actors}
		if !isName(a.Name) {
			return nil, fmt.Errorf("approvers: the name %q is not made of letters, digits, dot, dash, underscore and @", a.Name)
		}
		if slices.ContainsFunc(p.Approvers, func(b Approver) bool { return b.Name == a.Name }) {
			return nil, fmt.Errorf("approvers: %s stands twice", a.Name)
		}
		for _, actor := range a.Actors {
			if kind, identity, ok := strings.Cut(actor, ":"); !ok || kind == "" || identity == "" {
				return nil, fmt.Errorf("approvers: %s: the actor %q is not written as records show it, such as token:NAME", a.Name, actor)
			}
		}
		for _, line := range a.Keys {
			key, err := parseCLIKey(line)
			if err != nil {
				return nil, fmt.Errorf("approvers: %s: %w", a.Name, err)
			}
			approver.Keys = append(approver.Keys, Key{CLI: key})
		}
		for _, k := range a.Passkeys {
			key, err := parsePasskey(k.ID, k.PublicKey, k.RP, k.Origins)
			if err != nil {
				return nil, fmt.Errorf("approvers: %s: %w", a.Name, err)
			}
			approver.Keys = append(approver.Keys, Key{Passkey: key})
		}
		if len(approver.Keys) == 0 {
			return nil, fmt.Errorf("approvers: %s has no key", a.Name)
		}
		for _, k := range approver.Keys {
			if whose, ok := seen[k.fingerprint()]; ok {
				return nil, fmt.Errorf("approvers: %s and %s have the same key; two people have two", whose, a.Name)
			}
			seen[k.fingerprint()] = a.Name
		}
		p.Approvers = append(p.Approvers, approver)
	}
	return p, nil
}

// Approver finds somebody by name.
func (p *Policy) Approver(name string) (Approver, bool) {
	if p == nil {
		return Approver{}, false
	}
	i := slices.IndexFunc(p.Approvers, func(a Approver) bool { return a.Name == name })
	if i < 0 {
		return Approver{}, false
	}
	return p.Approvers[i], true
}

func (k Key) fingerprint() string {
	if k.Passkey != nil {
		return "passkey " + string(k.Passkey.PublicKey)
	}
	return "cli " + string(k.CLI)
}

// parseCLIKey reads a public key as OpenSSH writes it. Only Ed25519 keys without options are taken.
func parseCLIKey(line string) (ed25519.PublicKey, error) {
	public, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil || len(options) > 0 || len(bytes.TrimSpace(rest)) > 0 || public.Type() != ssh.KeyAlgoED25519 {
		return nil, errors.New("a key is one line: ssh-ed25519, the key, and a comment")
	}
	key, ok := public.(ssh.CryptoPublicKey).CryptoPublicKey().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("the key is no Ed25519 key")
	}
	return key, nil
}

func parsePasskey(id, public, rp string, origins []string) (*Passkey, error) {
	k := &Passkey{RelyingParty: rp, Origins: origins}
	var err error
	if k.ID, err = base64.RawURLEncoding.Strict().DecodeString(id); err != nil || len(k.ID) == 0 {
		return nil, errors.New("the id of a passkey is base64url without padding")
	}
	if k.PublicKey, err = base64.RawURLEncoding.Strict().DecodeString(public); err != nil {
		return nil, errors.New("the public_key of a passkey is base64url without padding")
	}
	if err := k.check(); err != nil {
		return nil, err
	}
	return k, nil
}

// check refuses a passkey that could be used from a place that its site does not own.
func (k *Passkey) check() error {
	if k.RelyingParty == "" || len(k.Origins) == 0 {
		return errors.New("a passkey names its rp and its origins")
	}
	for _, origin := range k.Origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			return fmt.Errorf("the origin %q is no scheme and host", origin)
		}
		host := u.Hostname()
		if host != k.RelyingParty && !strings.HasSuffix(host, "."+k.RelyingParty) {
			return fmt.Errorf("the origin %s does not belong to %s", origin, k.RelyingParty)
		}
		if u.Scheme != "https" && (u.Scheme != "http" || host != "localhost") {
			return fmt.Errorf("the origin %s is neither https nor http on localhost", origin)
		}
	}
	return k.checkKey()
}

func isName(s string) bool {
	const extra = "._-@"
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(extra, c)
	})
}
