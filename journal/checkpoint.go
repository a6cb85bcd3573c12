package journal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is the head of a journal: what a log signs, and what is kept where the
// writer cannot change it. It is a checkpoint of C2SP tlog-checkpoint.
type Checkpoint struct {
	Origin string
	Size   uint64 // how many records there are, which is the number of the next one
	Root   Hash   // of the Merkle tree of these records
}

// maxNote bounds a signed checkpoint, in bytes. Sixteen signatures of any kind that is
// planned fit.
const maxNote = 128 << 10

var (
	errCheckpoint = errors.New("not a checkpoint: an origin, a size and a root, one on each line")
	errNote       = errors.New("not a signed checkpoint: a checkpoint, an empty line and signature lines")
)

// String returns the text that is signed: origin, size and root on a line each.
func (c Checkpoint) String() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, base64.StdEncoding.EncodeToString(c.Root[:]))
}

// ParseCheckpoint reads the text of a checkpoint, without signatures. Lines of
// extensions are allowed, as the format has it, and say nothing here.
func ParseCheckpoint(text string) (c Checkpoint, err error) {
	lines := strings.SplitAfter(text, "\n")
	if len(text) > maxNote || len(lines) < 4 || lines[len(lines)-1] != "" {
		return c, errCheckpoint
	}
	lines = lines[:len(lines)-1]
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\n")
		if lines[i] == "" {
			return c, errCheckpoint
		}
	}
	size, okSize := parseSequence(lines[1])
	root, okRoot := parseBase64Hash(lines[2])
	if !isOrigin(lines[0]) || !okSize || !okRoot {
		return c, errCheckpoint
	}
	return Checkpoint{lines[0], size, root}, nil
}

// parseBase64Hash reads a hash as notes and proofs have it, in its one spelling.
func parseBase64Hash(text string) (h Hash, ok bool) {
	if len(text) != base64.StdEncoding.EncodedLen(len(h)) {
		return h, false
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(decoded) != len(h) {
		return h, false
	}
	return Hash(decoded), true
}

// SignCheckpoint returns the checkpoint as a signed note. Several signers are for the
// one checkpoint that hands a journal over from a key to the next; each must be of
// the checkpoint's origin.
func SignCheckpoint(c Checkpoint, signers ...*Signer) ([]byte, error) {
	if _, err := ParseCheckpoint(c.String()); err != nil {
		return nil, err
	}
	if len(signers) == 0 {
		return nil, errors.New("nobody to sign the checkpoint")
	}
	list := make([]note.Signer, len(signers))
	for i, s := range signers {
		if s.Origin() != c.Origin {
			return nil, fmt.Errorf("the key of %s does not sign checkpoints of %s", s.Origin(), c.Origin)
		}
		list[i] = s.signer
	}
	signed, err := note.Sign(&note.Note{Text: c.String()}, list...)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint: %w", err)
	}
	return signed, nil
}

// checkpointNote is a signed checkpoint of which no signature was checked.
type checkpointNote struct {
	Checkpoint
	text []byte
	all  []byte
}

// readNote reads a signed checkpoint and trusts nothing of it.
func readNote(signed []byte) (checkpointNote, error) {
	if len(signed) > maxNote {
		return checkpointNote{}, errNote
	}
	var unverified *note.UnverifiedNoteError
	if _, err := note.Open(signed, nil); !errors.As(err, &unverified) {
		return checkpointNote{}, errNote
	}
	text := unverified.Note.Text
	c, err := ParseCheckpoint(text)
	if err != nil {
		return checkpointNote{}, err
	}
	return checkpointNote{c, []byte(text), signed}, nil
}

// ReadCheckpoint returns what a signed checkpoint says, without checking a signature.
// It is for looking at one; Policy.Open is for trusting one.
func ReadCheckpoint(signed []byte) (Checkpoint, error) {
	n, err := readNote(signed)
	return n.Checkpoint, err
}

// Opened is a checkpoint that a log of a policy has signed.
type Opened struct {
	Checkpoint
	Logs         []Key         // who signed, of the logs that the policy names
	Cosignatures []Cosignature // of the witnesses that the policy names, sorted by name
	Quorum       bool          // whether the witnesses are as many as the policy asks for
}

// Cosignature says that a witness saw the checkpoint.
type Cosignature struct {
	Witness string // its name in the policy
	Key     Key
	Time    time.Time // when it said so, by its own clock
}

// SignatureError says why a signed checkpoint is not trusted.
type SignatureError struct {
	Problem SignatureProblem
	Key     string // name of the key, where one is to blame
}

// SignatureProblem is the kind of a SignatureError.
type SignatureProblem string

// The problems, in the order in which they are looked for.
const (
	ProblemMalformed SignatureProblem = "malformed" // not a signed checkpoint
	ProblemForged    SignatureProblem = "forged"    // a signature line under the name of a known key is not by that key
	ProblemUnsigned  SignatureProblem = "unsigned"  // no log that the policy names has signed it
	ProblemQuorum    SignatureProblem = "quorum"    // too few witnesses of the policy have seen it
	ProblemOrigin    SignatureProblem = "origin"    // it is of another journal than the one at hand
)

func (e *SignatureError) Error() string {
	switch e.Problem {
	case ProblemForged:
		return fmt.Sprintf("the checkpoint has a signature under the name of %s that its key did not make", e.Key)
	case ProblemUnsigned:
		return "no log that the policy names has signed the checkpoint"
	case ProblemOrigin:
		return "the checkpoint is of another journal"
	case ProblemQuorum:
		return "fewer witnesses have signed the checkpoint than the policy asks for"
	}
	return errNote.Error()
}
