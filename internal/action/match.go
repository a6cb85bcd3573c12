package action

import "time"

// MatchKind says how a call was recognised as a repeat.
type MatchKind string

// Kinds of match.
const (
	MatchNone        MatchKind = ""
	MatchKey         MatchKind = "key"         // the caller's durable key: exact, in every state
	MatchFingerprint MatchKind = "fingerprint" // an equal effect by the same actor in the same scope: a probable retry
	MatchRepeat      MatchKind = "repeat_of"   // a deliberate repeat, asked for again
	MatchUndo        MatchKind = "undo"        // a compensation, asked for again
)

// VerdictKind is what becomes of a call. The zero value lets nothing happen.
type VerdictKind string

// What becomes of a call.
const (
	Refuse VerdictKind = ""
	Open   VerdictKind = "new"
	Attach VerdictKind = "attached"
	Hold   VerdictKind = "held"
)

// Asked is a resolved call as the rule sees it.
type Asked struct {
	Run    RunID
	Actor  Actor
	Tool   string
	Keyed  bool // the caller gave a key
	Hinted bool // the caller named its run, so that it is no stranger among strangers; a fresh id alone would prove nothing
	// KeyOnly is the contract's word that equal calls side by side are normal work.
	KeyOnly bool
	// Variants are the digests of this call under each contract version and each HMAC key that still matters, the
	// current ones first.
	Variants []Variant
	Repeat   bool // repeat_of was given
	Undoes   ID   // the action that this call compensates
}

// Variant is the call's digests under one contract version and one key.
type Variant struct {
	Contract string
	Digests  Digests
}

// Priors are the earlier actions that could matter, read in the same atomic step that will create a new one.
type Priors struct {
	ByKey         *Action  // the action of this call's idem_key
	ByFingerprint []Action // equal fingerprint, newest first
	OpenByEffect  []Action // in doubt, equal effect, same principal, any run
	OpenResource  []Action // in doubt, same declared resource, same principal
	Repeated      *Action  // the action whose token repeat_of cites
	Successor     *Action  // the action that repeats Repeated already
	Undoing       *Action  // the action that compensates Undoes already
}

// Claim is the verdict about a call.
type Claim struct {
	Kind    VerdictKind
	Match   MatchKind
	Prior   *Action // what it attaches to, is held by, or resembles
	Why     string  // closed words: "open_action", "undelivered", "strangers", "resource", …
	Proved  *Action // the action whose result this call proves to have arrived
	Refusal *Error
}

// Match is the rule: is this call a repeat, and of what. It is a pure function of the call, the earlier actions and the
// time; the store runs it inside the transaction that acts on it.
func Match(asked Asked, priors Priors, now time.Time) Claim {
	if asked.Repeat {
		return matchRepeat(asked, priors)
	}
	if asked.Undoes != "" {
		return matchUndo(priors)
	}
	if priors.ByKey != nil {
		return matchKey(asked, *priors.ByKey)
	}
	if !asked.KeyOnly || !asked.Keyed {
		if c := matchFingerprint(asked, priors, now); c.Kind != Refuse {
			return c
		}
	}
	if held := firstHeld(priors); held != nil {
		return Claim{Kind: Hold, Prior: held, Why: whyHeld(asked, *held)}
	}
	return Claim{Kind: Open, Prior: similar(priors)}
}

// matchRepeat settles a call that cites a completed result. Citing it proves that the result arrived.
func matchRepeat(asked Asked, priors Priors) Claim {
	p := priors.Repeated
	if p == nil || p.Actor != asked.Actor.String() || p.Tool != asked.Tool || p.State != Completed {
		return Claim{Refusal: Errorf(CodeRepeatInvalid,
			"repeat_of cites no completed result of this tool that was given to you")}
	}
	if !asked.sameArguments(*p) {
		return Claim{Proved: p, Refusal: Errorf(CodeRepeatInvalid,
			"repeat_of cites %s, which had other arguments; leave repeat_of out to do something new", p.ID).About(p.ID)}
	}
	switch s := priors.Successor; {
	case priors.ByKey != nil && (s == nil || priors.ByKey.ID != s.ID):
		return Claim{Proved: p, Refusal: Errorf(CodeKeyReused,
			"this key belongs to %s already", priors.ByKey.ID).About(priors.ByKey.ID)}
	case s != nil:
		return Claim{Kind: Attach, Match: MatchRepeat, Prior: s, Proved: p, Why: "repeat_started"}
	}
	if held := standsInTheWay(priors); held != nil { // the token proves that one result arrived, and nothing about another send
		return Claim{Kind: Hold, Prior: held, Proved: p, Why: whyHeld(asked, *held)}
	}
	return Claim{Kind: Open, Match: MatchRepeat, Prior: p, Proved: p}
}

// matchUndo settles a compensation: there is one for an action, whoever asks and however often.
func matchUndo(priors Priors) Claim {
	if u := priors.Undoing; u != nil && !u.undecided() {
		return Claim{Kind: Attach, Match: MatchUndo, Prior: u, Why: "undo_started"}
	}
	if held := firstHeld(priors); held != nil {
		return Claim{Kind: Hold, Prior: held, Why: "resource"}
	}
	return Claim{Kind: Open, Match: MatchUndo}
}

// undecided reports whether an action ended without a decision and without an effect: its intent may get another one.
func (a Action) undecided() bool {
	return a.State == Rejected && (a.RejectReason == Expired || a.RejectReason == Cancelled)
}

// standsInTheWay picks an action that has to end before a deliberate repeat may begin.
func standsInTheWay(priors Priors) *Action {
	for i := range priors.ByFingerprint {
		if !priors.ByFingerprint[i].Closed() {
			return &priors.ByFingerprint[i]
		}
	}
	return firstHeld(priors)
}

// matchKey settles a call whose key is known: exact identity, in every state but one. An action that expired or was cancelled
// was decided by nobody and had no effect: its intent gets another one.
func matchKey(asked Asked, prior Action) Claim {
	if prior.Tool != asked.Tool || !asked.sameArguments(prior) {
		return Claim{Prior: &prior, Refusal: Errorf(CodeKeyReused,
			"this key belongs to %s, which has other arguments", prior.ID).About(prior.ID)}
	}
	if prior.undecided() {
		return Claim{Kind: Open, Match: MatchKey, Prior: &prior, Why: "ended_undecided"}
	}
	return Claim{Kind: Attach, Match: MatchKey, Prior: &prior, Why: "same_key"}
}

// matchFingerprint finds a probable retry among equal calls of the same actor in the same scope. An open action matches
// at any age; a final one only while nobody has shown that its answer arrived.
func matchFingerprint(asked Asked, priors Priors, now time.Time) Claim {
	var best *Action
	for i := range priors.ByFingerprint {
		p := &priors.ByFingerprint[i]
		if !p.Closed() {
			best = p
			break
		}
		if best == nil && p.attachable(now) {
			best = p
		}
	}
	if best == nil {
		return Claim{}
	}
	if asked.Actor.Shared && !asked.Hinted {
		return Claim{Kind: Hold, Match: MatchFingerprint, Prior: best, Why: "strangers"}
	}
	why := "open_action"
	if best.State.Final() {
		why = "undelivered"
	}
	return Claim{Kind: Attach, Match: MatchFingerprint, Prior: best, Why: why}
}

// attachable says whether an equal call without a key belongs to this action.
func (a Action) attachable(now time.Time) bool {
	inWindow := a.AttachFor > 0 && now.Before(a.FinishedAt.Add(a.AttachFor))
	switch a.State {
	case Completed:
		return a.Delivery != Delivered && inWindow
	case Failed:
		return a.FailureClass == NotSent && inWindow
	case Rejected:
		return a.RejectReason.Decision() && inWindow
	default:
		return !a.Abandoned
	}
}

// firstHeld picks the action that stands in the way of a call which matched none.
func firstHeld(priors Priors) *Action {
	if len(priors.OpenByEffect) > 0 {
		return &priors.OpenByEffect[0]
	}
	if len(priors.OpenResource) > 0 {
		return &priors.OpenResource[0]
	}
	return nil
}

func whyHeld(asked Asked, a Action) string {
	for _, v := range asked.Variants {
		if v.Digests.Effect == a.Digests.Effect {
			return "equal_effect"
		}
	}
	return "resource"
}

// similar names an equal action that is over, for the reader of a new one.
func similar(priors Priors) *Action {
	if len(priors.ByFingerprint) > 0 {
		return &priors.ByFingerprint[0]
	}
	return nil
}

// sameArguments compares arguments under the contract version and the key that the earlier action was made with.
func (q Asked) sameArguments(a Action) bool {
	for _, v := range q.Variants {
		if v.Contract == a.Contract && v.Digests.KeyID == a.Digests.KeyID && v.Digests.Args == a.Digests.Args {
			return true
		}
	}
	return false
}
