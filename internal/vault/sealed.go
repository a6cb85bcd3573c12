package vault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"deed.dev/deed/internal/vault/agefile"
)

// format names the text inside the encrypted file. A reader refuses every other.
const format = "deed-vault/1"

// sealedFile is the vault's file while it is open.
type sealedFile struct {
	recipients []string // who can open it; none when it is a passphrase
	work       int      // of the passphrase
	entries    map[string]*sealedEntry
}

// sealedEntry is one value, with what it was given for.
type sealedEntry struct {
	purpose  purpose
	value    buffer
	set      time.Time
	verified time.Time // when this value was last shown to be the active one; zero if never
	by       Verifier
	next     buffer // the value of a rotation that is not over
	since    time.Time
}

// Verifier is how it was found out which value is active.
type Verifier string

// Verifiers.
const (
	ByCheck  Verifier = "check"  // the credential's check was made with the value
	ByPerson Verifier = "person" // somebody said so
)

// wireFile is the text.
type wireFile struct {
	Format     string      `json:"format"`
	Recipients []string    `json:"recipients,omitempty"`
	Work       int         `json:"work_factor,omitzero"`
	Entries    []wireEntry `json:"entries"`
}

type wireEntry struct {
	Ref      string    `json:"ref"`
	Purpose  purpose   `json:"purpose"`
	Value    []byte    `json:"value"`
	Set      time.Time `json:"set"`
	Verified time.Time `json:"verified,omitzero"`
	By       Verifier  `json:"verified_by,omitzero"`
	Next     []byte    `json:"next,omitempty"`
	Since    time.Time `json:"rotating_since,omitzero"`
}

func (s *sealedFile) encode() ([]byte, error) {
	w := wireFile{Format: format, Recipients: s.recipients, Work: s.work, Entries: []wireEntry{}}
	for ref, e := range s.entries {
		w.Entries = append(w.Entries, wireEntry{ref, e.purpose, e.value.bytes(), e.set, e.verified, e.by, e.next.bytes(), e.since})
	}
	slices.SortFunc(w.Entries, func(a, b wireEntry) int { return strings.Compare(a.Ref, b.Ref) })
	return json.Marshal(w)
}

// decode reads the text, strictly, and wipes it. Its errors quote nothing.
func decode(text []byte) (*sealedFile, error) {
	defer clear(text)
	var named struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(text, &named); err == nil && named.Format != format && strings.HasPrefix(named.Format, "deed-vault/") {
		return nil, errors.New("the vault's file was written by another version of deed, which this one cannot read")
	}
	var w wireFile
	if err := json.Unmarshal(text, &w, json.RejectUnknownMembers(true)); err != nil || w.Format != format {
		return nil, fmt.Errorf("%w: what it holds is no vault", agefile.ErrDamaged)
	}
	s := &sealedFile{recipients: w.Recipients, work: w.Work, entries: map[string]*sealedEntry{}}
	for _, e := range w.Entries {
		_, known := natures[e.Purpose.Kind]
		if _, twice := s.entries[e.Ref]; twice || !known || !name(e.Ref) || len(e.Value) == 0 || (len(e.Next) > 0) == e.Since.IsZero() {
			return nil, fmt.Errorf("%w: an entry of it is none", agefile.ErrDamaged)
		}
		s.entries[e.Ref] = &sealedEntry{e.Purpose, newBuffer(e.Value), e.Set, e.Verified, e.By, newBuffer(e.Next), e.Since}
	}
	return s, nil
}

// wipe overwrites every value.
func (s *sealedFile) wipe() {
	if s == nil {
		return
	}
	for _, e := range s.entries {
		e.value.wipe()
		e.next.wipe()
	}
}

// Entry is what may be known of a value in the vault.
type Entry struct {
	Ref        string    `json:"ref"`
	Kind       Kind      `json:"kind"`
	Hosts      []string  `json:"hosts"`
	Set        time.Time `json:"set"`
	Verified   time.Time `json:"verified,omitzero"`
	VerifiedBy Verifier  `json:"verified_by,omitzero"`
	Rotating   time.Time `json:"rotating_since,omitzero"` // a rotation is not over: which value is active is not known
}

func (s *sealedFile) list() []Entry {
	all := []Entry{}
	for ref, e := range s.entries {
		all = append(all, Entry{ref, e.purpose.Kind, slices.Clone(e.purpose.Hosts), e.set, e.verified, e.by, e.since})
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Ref, b.Ref) })
	return all
}
