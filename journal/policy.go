package journal

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Policy says whose checkpoints are trusted: which logs may sign, and which witnesses
// must have seen what they signed. It is a policy of C2SP tlog-policy:
//
//	log <vkey> [<url>]
//	witness <name> <vkey> [<url>]
//	group <name> all|any|<k> <name>…
//	quorum <name>|none
type Policy struct {
	Logs      []Key
	Witnesses []Witness
	quorum    *quorum // nil when none is required
}

// Witness is one line of a policy.
type Witness struct {
	Name string // in the policy, and nowhere else
	Key  Key
	URL  string // where it is reached, or empty
}

// quorum is a witness, or a group of which need members must have signed.
type quorum struct {
	witness int // index, when there are no members
	need    int
	members []*quorum
}

const maxPolicy = 1 << 20 // bytes

// PolicyError says what is wrong with a policy and where.
type PolicyError struct {
	Line    int // from 1; 0 when it is the whole
	Problem string
}

func (e *PolicyError) Error() string {
	if e.Line == 0 {
		return "policy: " + e.Problem
	}
	return fmt.Sprintf("policy line %d: %s", e.Line, e.Problem)
}

// TrustLogs is the policy that trusts these logs and asks for no witness.
func TrustLogs(logs ...Key) *Policy { return &Policy{Logs: logs} }

// ParsePolicy reads a policy file. Every line must be understood and the last one must
// end in a line feed, so that half a file is not taken for the whole. The error is a
// *PolicyError. A policy may name no log; it then trusts nothing until WithLogs.
func ParsePolicy(text []byte) (*Policy, error) {
	if len(text) > maxPolicy {
		return nil, &PolicyError{0, "longer than a policy may be"}
	}
	p := policyParser{names: map[string]*quorum{}, member: map[string]bool{}, keys: map[string]bool{}}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line, terminated := bytes.CutSuffix(line, []byte("\n"))
		problem := p.line(line)
		if problem == "" && !terminated {
			problem = "the last line has no line feed, so the file may have been cut"
		}
		if problem != "" {
			return nil, &PolicyError{number, problem}
		}
	}
	if !p.hasQuorum {
		return nil, &PolicyError{0, "there is no quorum line; write \"quorum none\" if no witness is asked for"}
	}
	return &p.Policy, nil
}

type policyParser struct {
	Policy
	hasQuorum bool
	names     map[string]*quorum // of witnesses and groups
	member    map[string]bool    // names that are in a group
	keys      map[string]bool    // kind and bytes of the keys named so far
}

// line reads one line and returns what is wrong with it.
func (p *policyParser) line(line []byte) (problem string) {
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Sprintf("control character %#02x", c)
		}
	}
	fields := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) == 0 || fields[0][0] == '#' {
		return ""
	}
	switch word, rest := fields[0], fields[1:]; word {
	case "log":
		return p.log(rest)
	case "witness":
		return p.witness(rest)
	case "group":
		return p.group(rest)
	case "quorum":
		return p.setQuorum(rest)
	default:
		return "a line begins with log, witness, group, quorum or #"
	}
}

func (p *policyParser) log(fields []string) (problem string) {
	if len(fields) < 1 || len(fields) > 2 {
		return "want: log <vkey> [<url>]"
	}
	key, problem := p.key(fields[0], false)
	if problem == "" {
		p.Logs = append(p.Logs, key)
	}
	return problem
}

func (p *policyParser) witness(fields []string) (problem string) {
	if len(fields) < 2 || len(fields) > 3 {
		return "want: witness <name> <vkey> [<url>]"
	}
	w := Witness{Name: fields[0]}
	if len(fields) == 3 {
		w.URL = fields[2]
	}
	if w.Key, problem = p.key(fields[1], true); problem != "" {
		return problem
	}
	if problem = p.name(w.Name, &quorum{witness: len(p.Witnesses)}); problem == "" {
		p.Witnesses = append(p.Witnesses, w)
	}
	return problem
}

// key reads a key that is in the policy for the first time.
func (p *policyParser) key(text string, witness bool) (key Key, problem string) {
	key, err := ParseKey(text)
	switch {
	case err != nil:
		return key, err.Error()
	case key.IsWitness() && !witness:
		return key, "this is the key of a witness (kind 4), not of a log (kind 1)"
	case !key.IsWitness() && witness:
		return key, "this is the key of a log (kind 1), not of a witness (kind 4)"
	case p.keys[string(key.material())]:
		return key, "this key is in the policy already, perhaps under another name"
	}
	p.keys[string(key.material())] = true
	return key, ""
}

// name gives a witness or a group its name.
func (p *policyParser) name(name string, q *quorum) (problem string) {
	if name == "none" || p.names[name] != nil {
		return fmt.Sprintf("the name %q is taken", name)
	}
	p.names[name] = q
	return ""
}

func (p *policyParser) group(fields []string) (problem string) {
	if len(fields) < 3 {
		return "want: group <name> all|any|<k> <name>…"
	}
	q := &quorum{}
	members := fields[2:]
	for _, member := range members {
		defined := p.names[member]
		switch {
		case defined == nil:
			return fmt.Sprintf("no line before this one defines %q", member)
		case p.member[member]:
			return fmt.Sprintf("%q is a member of a group already", member)
		}
		p.member[member] = true
		q.members = append(q.members, defined)
	}
	switch need := fields[1]; need {
	case "all":
		q.need = len(members)
	case "any":
		q.need = 1
	default:
		k, err := strconv.Atoi(need)
		if err != nil || need != strconv.Itoa(k) || k < 1 || k > len(members) {
			return fmt.Sprintf("want all, any or a number from 1 to %d, which is how many members there are", len(members))
		}
		q.need = k
	}
	return p.name(fields[0], q)
}

func (p *policyParser) setQuorum(fields []string) (problem string) {
	switch {
	case len(fields) != 1:
		return "want: quorum <name>|none"
	case p.hasQuorum:
		return "there is a quorum line already"
	case fields[0] != "none" && p.names[fields[0]] == nil:
		return fmt.Sprintf("no line before this one defines %q", fields[0])
	}
	p.hasQuorum, p.quorum = true, p.names[fields[0]]
	return ""
}

// WithLogs returns the policy with these logs in addition, for a policy that leaves
// them to be known from elsewhere.
func (p *Policy) WithLogs(logs ...Key) *Policy {
	with := *p
	with.Logs = slices.Concat(p.Logs, logs)
	return &with
}

// AsksForWitnesses says whether a checkpoint needs cosignatures to be trusted.
func (p *Policy) AsksForWitnesses() bool { return p.quorum != nil }

// Open reads a signed checkpoint and checks the signatures of all keys that the policy
// names. Signatures of others are passed over. The error is a *SignatureError; it is
// nil when a log whose key bears the checkpoint's origin as its name has signed and no
// signature under a known name is false. Whether the witnesses are enough is in Quorum.
func (p *Policy) Open(signed []byte) (Opened, error) {
	n, err := readNote(signed)
	if err != nil {
		return Opened{}, &SignatureError{Problem: ProblemMalformed}
	}
	known := knownKeys{}
	for _, log := range p.Logs {
		if log.Name() == n.Origin {
			known.add(log)
		}
	}
	for _, w := range p.Witnesses {
		known.add(w.Key)
	}
	checked, err := note.Open(signed, known)
	var forged *note.InvalidSignatureError
	switch {
	case errors.As(err, &forged):
		return Opened{}, &SignatureError{ProblemForged, forged.Name}
	case err != nil:
		return Opened{}, &SignatureError{Problem: ProblemUnsigned}
	}
	opened := Opened{Checkpoint: n.Checkpoint}
	seen := make([]bool, len(p.Witnesses))
	for _, sig := range checked.Sigs {
		key := known[keyID{sig.Name, sig.Hash}]
		if !key.IsWitness() {
			opened.Logs = append(opened.Logs, key)
			continue
		}
		i := slices.IndexFunc(p.Witnesses, func(w Witness) bool { return w.Key == key })
		seen[i] = true
		opened.Cosignatures = append(opened.Cosignatures, Cosignature{p.Witnesses[i].Name, key, cosignatureTime(sig)})
	}
	if len(opened.Logs) == 0 {
		return Opened{}, &SignatureError{Problem: ProblemUnsigned}
	}
	slices.SortFunc(opened.Cosignatures, func(a, b Cosignature) int { return cmp.Compare(a.Witness, b.Witness) })
	opened.Quorum = p.quorum == nil || p.quorum.met(seen)
	return opened, nil
}

// Check is Open for callers to whom a checkpoint without quorum is no better than none.
func (p *Policy) Check(signed []byte) (Opened, error) {
	opened, err := p.Open(signed)
	if err == nil && !opened.Quorum {
		err = &SignatureError{Problem: ProblemQuorum}
	}
	return opened, err
}

func (q *quorum) met(seen []bool) bool {
	if len(q.members) == 0 {
		return seen[q.witness]
	}
	have := 0
	for _, member := range q.members {
		if member.met(seen) {
			have++
		}
	}
	return have >= q.need
}

// cosignatureTime reads the time out of a cosignature that was checked.
func cosignatureTime(sig note.Signature) time.Time {
	decoded, err := base64.StdEncoding.DecodeString(sig.Base64)
	if err != nil || len(decoded) < 12 {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(decoded[4:])), 0).UTC()
}

type keyID struct {
	name string
	id   uint32
}

// knownKeys finds keys for note.Open. Of two with the same name and number, which
// somebody made on purpose, the first one counts.
type knownKeys map[keyID]Key

func (k knownKeys) add(key Key) {
	if id := (keyID{key.name, key.id}); k[id] == (Key{}) {
		k[id] = key
	}
}

func (k knownKeys) Verifier(name string, id uint32) (note.Verifier, error) {
	key, ok := k[keyID{name, id}]
	if !ok {
		return nil, &note.UnknownVerifierError{Name: name, KeyHash: id}
	}
	return key, nil
}
