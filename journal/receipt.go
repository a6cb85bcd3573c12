package journal

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	receiptFormat = "c2sp.org/tlog-proof@v1"
	maxReceipt    = 8 << 20 // bytes
	maxProof      = 63      // hashes
)

// ReceiptProblem says why a receipt proves nothing.
type ReceiptProblem string

// The problems, in the order in which they are looked for.
const (
	ReceiptMalformed  ReceiptProblem = "malformed"  // not a receipt
	ReceiptCheckpoint ReceiptProblem = "checkpoint" // the checkpoint in it is not trusted; Err is a *SignatureError
	ReceiptProfile    ReceiptProblem = "profile"    // a body breaks the profile; Err is a *ProfileError
	ReceiptIndex      ReceiptProblem = "index"      // the first body has another number than the receipt says
	ReceiptInclusion  ReceiptProblem = "inclusion"  // the first body is not in the tree of the checkpoint
	ReceiptAfter      ReceiptProblem = "after"      // a body is not the one that the body before it names, or one is missing
	ReceiptAction     ReceiptProblem = "action"     // a body names another action_id than the body before it, or none
)

// ReceiptError says what is wrong with a receipt. No body of it may be believed.
type ReceiptError struct {
	Problem ReceiptProblem
	Body    int   // which body, from 0, for profile, after and action
	Err     error // what is behind it, or nil
}

func (e *ReceiptError) Error() string {
	text := map[ReceiptProblem]string{
		ReceiptMalformed:  "this is not a receipt",
		ReceiptCheckpoint: "the checkpoint of the receipt is not trusted",
		ReceiptProfile:    fmt.Sprintf("event %d of the receipt breaks the profile", e.Body),
		ReceiptIndex:      "the newest event has another number than the receipt says",
		ReceiptInclusion:  "the newest event is not in the journal that the checkpoint is of",
		ReceiptAfter:      fmt.Sprintf("event %d of the receipt is not the one that was before", e.Body),
		ReceiptAction:     fmt.Sprintf("event %d of the receipt is of another action", e.Body),
	}[e.Problem]
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *ReceiptError) Unwrap() error { return e.Err }

// ReceiptReport is what a receipt proves: each of these bodies was in the journal when
// the checkpoint was signed, at the latest.
type ReceiptReport struct {
	Origin     string
	Index      uint64   // number of the newest record
	Bodies     [][]byte // newest first
	Checkpoint Opened   // whose Quorum is true
}

// receipt is a receipt taken apart, of which nothing was checked.
type receipt struct {
	bodies [][]byte
	index  uint64
	proof  []Hash
	note   []byte
}

// MakeReceipt writes the receipt of an action: a C2SP tlog-proof of its newest record
// against a signed checkpoint, with the bodies of all its records, newest first. Each
// body must name the next one as its after, and the last one none. It refuses to
// write what would not be true; whose signatures the checkpoint has it does not look
// at.
func MakeReceipt(bodies [][]byte, stored HashReader, checkpoint []byte) ([]byte, error) {
	n, err := readNote(checkpoint)
	if err != nil {
		return nil, err
	}
	if len(bodies) == 0 {
		return nil, errors.New("a receipt of no records")
	}
	found, rule, offset := scanBody(bodies[0])
	if rule != "" {
		return nil, &ReceiptError{Problem: ReceiptProfile, Err: &ProfileError{Rule: rule, Offset: offset}}
	}
	r := receipt{bodies: bodies, index: found.seq, note: checkpoint}
	if r.index >= n.Size {
		return nil, fmt.Errorf("record %d is newer than the checkpoint, which has %d", r.index, n.Size)
	}
	if r.proof, err = ProveInclusion(n.Size, r.index, stored); err != nil {
		return nil, err
	}
	if err := r.check(n.Checkpoint); err != nil {
		return nil, err
	}
	text := r.append(nil)
	if len(text) > maxReceipt {
		return nil, errors.New("the records are too long for one receipt")
	}
	return text, nil
}

// VerifyReceipt says what a receipt proves under a policy: TrustLogs(key) for a key
// alone. It needs nothing else, neither the journal nor a network. The error is a
// *ReceiptError.
func VerifyReceipt(text []byte, policy *Policy) (ReceiptReport, error) {
	r, ok := parseReceipt(text)
	if !ok {
		return ReceiptReport{}, &ReceiptError{Problem: ReceiptMalformed}
	}
	opened, err := policy.Check(r.note)
	if err != nil {
		return ReceiptReport{}, &ReceiptError{Problem: ReceiptCheckpoint, Err: err}
	}
	if err := r.check(opened.Checkpoint); err != nil {
		return ReceiptReport{}, err
	}
	return ReceiptReport{opened.Origin, r.index, r.bodies, opened}, nil
}

// check holds the bodies against the checkpoint. They come from a part of the receipt
// that nobody signed, so each is hashed and none is believed before.
func (r *receipt) check(c Checkpoint) error {
	var want kinship // what the newer body says of this one
	var newer uint64
	for i, body := range r.bodies {
		found, rule, offset := scanBody(body)
		switch {
		case rule != "":
			return &ReceiptError{ReceiptProfile, i, &ProfileError{Rule: rule, Offset: offset}}
		case i == 0 && found.seq != r.index:
			return &ReceiptError{Problem: ReceiptIndex}
		case i == 0 && CheckInclusion(r.proof, c.Size, c.Root, r.index, LeafHash(body)) != nil:
			return &ReceiptError{Problem: ReceiptInclusion}
		case i > 0 && (want.after == nil || LeafHash(body) != *want.after || found.seq >= newer):
			return &ReceiptError{Problem: ReceiptAfter, Body: i}
		}
		here, ok := kinshipOf(body)
		if i > 0 && (here.action == nil || want.action == nil || *here.action != *want.action) {
			return &ReceiptError{Problem: ReceiptAction, Body: i}
		}
		if !ok {
			return &ReceiptError{Problem: ReceiptAfter, Body: i}
		}
		want, newer = here, found.seq
	}
	if want.after != nil { // an older event of the action was left out
		return &ReceiptError{Problem: ReceiptAfter, Body: len(r.bodies)}
	}
	return nil
}

// kinship is what a body says of the action that it is of, and of that action's earlier records.
type kinship struct {
	after  *Hash   // the earlier record of the same action; nil when it names none
	action *string // nil when it is of none
}

// kinshipOf reads it from a body that has passed the profile.
func kinshipOf(body []byte) (k kinship, ok bool) {
	var named struct {
		After  *string `json:"after"`
		Action *string `json:"action_id"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return kinship{}, false
	}
	k.action = named.Action
	if named.After == nil {
		return k, true
	}
	hash, ok := parseHash(*named.After)
	k.after = &hash
	return k, ok
}

func (r *receipt) append(text []byte) []byte {
	text = append(text, receiptFormat+"\nextra "...)
	text = base64.StdEncoding.AppendEncode(text, bytes.Join(r.bodies, []byte("\n")))
	text = fmt.Appendf(text, "\nindex %d\n", r.index)
	for _, h := range r.proof {
		text = base64.StdEncoding.AppendEncode(text, h[:])
		text = append(text, '\n')
	}
	text = append(text, '\n')
	return append(text, r.note...)
}

// parseReceipt reads the one spelling of a receipt.
func parseReceipt(text []byte) (r receipt, ok bool) {
	if len(text) > maxReceipt {
		return r, false
	}
	head, checkpoint, found := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !found || len(lines) < 3 || len(lines) > 3+maxProof || lines[0] != receiptFormat {
		return r, false
	}
	extra, hasExtra := strings.CutPrefix(lines[1], "extra ")
	decoded, err := base64.StdEncoding.Strict().DecodeString(extra)
	// Decoding passes over carriage returns, and the length tells.
	if !hasExtra || err != nil || len(extra) != base64.StdEncoding.EncodedLen(len(decoded)) {
		return r, false
	}
	r.bodies = bytes.Split(decoded, []byte("\n"))
	index, hasIndex := strings.CutPrefix(lines[2], "index ")
	r.index, ok = parseSequence(index)
	if !hasIndex || !ok || index != strconv.FormatUint(r.index, 10) {
		return r, false
	}
	for _, line := range lines[3:] {
		h, ok := parseBase64Hash(line)
		if !ok {
			return r, false
		}
		r.proof = append(r.proof, h)
	}
	r.note = checkpoint
	return r, true
}
