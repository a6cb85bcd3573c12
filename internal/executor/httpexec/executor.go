package httpexec

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/vault"
)

// Vault opens a credential for one target, in the moment of use. *vault.Vault is one.
type Vault interface {
	Open(ctx context.Context, ref string, target action.Target) (*vault.Opened, error)
}

// Options are what an Executor may be given. Each zero value is a good one.
type Options struct {
	Vault    Vault          // without one, every operation with a credential is refused
	RootCAs  *x509.CertPool // nil: the system's
	Resolver Resolver       // nil: the system's
	Now      func() time.Time

	DialTimeout    time.Duration // for one address; 10 s
	IdleTimeout    time.Duration // how long an unused connection is kept; 4 s, less than servers commonly do
	MaxIdlePerHost int           // 64
	LateFor        time.Duration // how long an answer is waited for after its attempt timed out; 2 min; negative: not at all
	UserAgent      string        // "deed"
}

// An Executor performs HTTP operations. It is safe for use by several goroutines; each attempt has a connection for itself
// while it lasts.
type Executor struct {
	vault       Vault
	resolver    Resolver
	tls         *tls.Config
	now         func() time.Time
	dialTimeout time.Duration
	idleTimeout time.Duration
	userAgent   string
	pool        *pool
	late        *lateReaders

	testOnlyBeforeSend func(*link) // runs when a connection is chosen and nothing was written
}

// New makes an executor. Close it when no attempt runs any more.
func New(o Options) *Executor {
	e := &Executor{
		vault: o.Vault, resolver: o.Resolver, now: o.Now, dialTimeout: o.DialTimeout, idleTimeout: o.IdleTimeout,
		userAgent: o.UserAgent,
		tls: &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs, NextProtos: []string{"h2", "http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(128),
		},
	}
	if e.resolver == nil {
		e.resolver = net.DefaultResolver
	}
	if e.now == nil {
		e.now = time.Now
	}
	if e.dialTimeout <= 0 {
		e.dialTimeout = 10 * time.Second
	}
	if e.idleTimeout <= 0 {
		e.idleTimeout = 4 * time.Second
	}
	if e.userAgent == "" {
		e.userAgent = "deed"
	}
	perHost := o.MaxIdlePerHost
	if perHost <= 0 {
		perHost = 64
	}
	e.pool, e.late = newPool(perHost), newLateReaders(o.LateFor)
	return e
}

// Close closes the connections that wait, for a request or for a late answer. Attempts that run keep theirs until they
// end; later ones are refused. It returns when no call of a Dispatch's Late runs any more.
func (e *Executor) Close() {
	e.pool.close()
	e.late.close()
}

// defaultTimeout holds where a contract sets none.
const defaultTimeout = 30 * time.Second

// Perform makes one attempt and says what it proves. It sends at most one request and never returns an error: whatever
// goes wrong is an outcome. A cancelled ctx ends the attempt; what was sent by then stays sent. It also ends the wait for a
// late answer, so keep ctx alive as long as one is welcome.
func (e *Executor) Perform(ctx context.Context, d action.Dispatch) action.Outcome {
	started := e.now()
	out, open := e.perform(ctx, d)
	out.Started, out.Ended = started, e.now()
	if open != nil {
		go open.await(ctx, started) // the last thing that is done here; Close waits for it
	}
	return out
}

// perform gives the outcome, and what is still open where the answer may come late.
func (e *Executor) perform(caller context.Context, d action.Dispatch) (action.Outcome, *openEnd) {
	if reason := refuse(d); reason != "" {
		return notSent(reason), nil
	}
	arguments, err := fill(&d)
	if err != nil {
		return notSent(ReasonRequestRefused), nil
	}
	req, err := build(d, e.userAgent)
	if err != nil {
		return notSent(ReasonRequestRefused), nil
	}
	timeout := time.Duration(d.Operation.Timeout) * time.Millisecond
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(caller, timeout)
	defer cancel()

	l, opened, err := e.ready(ctx, d.Operation)
	if err != nil {
		return notSent(beforeSend(ctx, err)), nil
	}
	if opened != nil {
		if err := opened.Apply(req); err != nil {
			e.pool.put(l)
			return notSent(ReasonRequestRefused), nil
		}
	}
	if err := ctx.Err(); err != nil {
		e.pool.put(l)
		return notSent(beforeSend(ctx, err)), nil
	}
	if e.testOnlyBeforeSend != nil {
		e.testOnlyBeforeSend(l)
	}
	if opened != nil { // the last look before the first byte: a lock counts at once
		if err := opened.Still(); err != nil {
			e.pool.put(l)
			return notSent(ReasonVaultLocked), nil
		}
	}
	s := &sending{executor: e, dispatch: d, link: l, request: req, hide: opened.With(arguments...)}
	if d.Late == nil || e.late.reads <= 0 {
		return s.finish(ctx, s.exchange(ctx)), nil
	}
	return s.inTime(ctx, caller)
}

// ready opens the credential and finds a connection. The credential is opened first, so that a locked vault or a target
// that it is not meant for ends the matter before anything is dialled. Whether it may still be used is asked once more
// before the first byte, since a dial may take long.
func (e *Executor) ready(ctx context.Context, op action.Operation) (*link, *vault.Opened, error) {
	opened, err := e.open(ctx, op)
	if err != nil {
		return nil, nil, err
	}
	key := keyOf(op)
	certificate, shown := certificateOf(opened)
	if shown {
		key.certificate = fingerprintOf(certificate)
	}
	if l := e.pool.take(key); l != nil {
		return l, opened, nil
	}
	if e.pool.isClosed() {
		return nil, nil, &sendError{ReasonClosed, nil}
	}
	l, err := e.connect(ctx, key, op.Target, certificate)
	if err != nil {
		return nil, nil, err
	}
	return l, opened, nil
}

func maxResult(op action.Operation) int64 {
	if op.MaxResult > 0 {
		return op.MaxResult
	}
	return 1 << 20
}
