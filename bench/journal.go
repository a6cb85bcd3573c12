package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/journal"
)

// journalFigures are what the budgets of the journal are about.
type journalFigures struct {
	events      int
	perCPU      float64 // events verified per second of processor time
	ofSHA       float64 // of what hashing the same bytes alone takes
	allocs      float64 // per 1,000 events
	heap        uint64  // the most that was seen while verifying, above what was there before
	receipt     int     // bytes
	check       time.Duration
	proof       time.Duration
	stored      int64 // records in the store of the proof
	alone, many measured
}

// exampleJournal is a journal in a file, with its tree and a signed checkpoint.
type exampleJournal struct {
	path   string
	stored tree
	signed []byte
	policy *journal.Policy
	body   []byte // of a record in the middle, which is an action of its own
}

// tree is a stored tree in memory.
type tree []journal.Hash

// ReadHashes implements journal.HashReader.
func (t tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		found[i] = tlog.Hash(t[at])
	}
	return found, nil
}

func writeExample(dir string, events int) (*exampleJournal, error) {
	const origin = "bench.example/journal"
	private, key, err := journal.GenerateKey(rand.Reader, origin)
	if err != nil {
		return nil, err
	}
	signer, err := journal.NewSigner(private)
	if err != nil {
		return nil, err
	}
	chain, err := journal.NewChain(origin)
	if err != nil {
		return nil, err
	}
	e := &exampleJournal{path: filepath.Join(dir, "journal.events"), policy: journal.TrustLogs(key)}
	f, err := os.Create(e.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var head journal.Tree
	var line []byte
	at := time.Date(2026, 10, 5, 9, 0, 0, 0, time.UTC)
	for i := range events {
		var r journal.Record
		if i == 0 {
			r, err = chain.Open(map[string]any{"time": at})
		} else {
			r, err = chain.Next(exampleEvent(i, at))
		}
		if err != nil {
			return nil, err
		}
		if i == events/2 {
			e.body = r.Body
		}
		_, hashes := head.Add(r.Hash)
		e.stored = append(e.stored, hashes...)
		line = journal.AppendLine(line[:0], r)
		if _, err := w.Write(line); err != nil {
			return nil, err
		}
		chain.Commit()
	}
	e.signed, err = journal.SignCheckpoint(journal.Checkpoint{Origin: origin, Size: head.Size(), Root: head.Root()}, signer)
	return e, errors.Join(err, w.Flush())
}

// exampleEvent is of the size and shape that a gateway writes.
func exampleEvent(i int, at time.Time) map[string]any {
	return map[string]any{
		"event": "action.completed", "event_id": fmt.Sprintf("evt_%026d", i), "action_id": fmt.Sprintf("act_%026d", i), "time": at,
		"actor":      map[string]any{"kind": "process", "identity": "uid=1000 exe=/usr/bin/agent"},
		"action":     map[string]any{"channel": "http", "host": "deploy-api.internal.example", "port": 443, "protocol": "https", "state": "completed"},
		"outcome":    map[string]any{"attempt_id": fmt.Sprintf("att_%026d", i), "bytes_sent": 457, "certainty": "effect_proven", "http_status": 201},
		"commitment": journal.LeafHash([]byte(fmt.Sprint(i))),
	}
}

func measureJournal(ctx context.Context, s settings) (f journalFigures, err error) {
	f.events = s.events
	dir, err := os.MkdirTemp("", "deed-bench-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	e, err := writeExample(dir, s.events)
	if err != nil {
		return f, err
	}
	if err := f.receipts(e); err != nil {
		return f, err
	}
	e.stored = nil // so that the heap below is that of verifying
	var verified, hashed []time.Duration
	for range s.runs {
		took, err := f.verify(e)
		if err != nil {
			return f, err
		}
		verified = append(verified, took)
		if took, err = hashAlone(e.path); err != nil {
			return f, err
		}
		hashed = append(hashed, took)
	}
	slices.Sort(verified)
	slices.Sort(hashed)
	took := verified[len(verified)/2]
	f.perCPU = float64(s.events) / took.Seconds()
	f.ofSHA = float64(hashed[len(hashed)/2]) / float64(took)
	if err := os.Remove(e.path); err != nil {
		return f, err
	}
	return f, f.commits(ctx, s)
}

func (f *journalFigures) receipts(e *exampleJournal) error {
	text, err := journal.MakeReceipt([][]byte{e.body}, e.stored, e.signed)
	if err != nil {
		return err
	}
	f.receipt = len(text)
	const times = 2000
	before := cpuTime()
	for range times {
		if _, err := journal.VerifyReceipt(text, e.policy); err != nil {
			return err
		}
	}
	f.check = (cpuTime() - before) / times
	return nil
}

// verify audits the file once, and notes what it needs.
func (f *journalFigures) verify(e *exampleJournal) (time.Duration, error) {
	file, err := os.Open(e.path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	runtime.GC()
	var start, now runtime.MemStats
	runtime.ReadMemStats(&start)
	var reads int
	evidence := journal.Evidence{Policy: e.policy, Beside: e.signed, Progress: func(int64) {
		if reads++; reads%500 == 0 {
			runtime.ReadMemStats(&now)
			f.heap = max(f.heap, now.HeapAlloc-min(start.HeapAlloc, now.HeapAlloc))
		}
	}}
	before := cpuTime()
	report, err := journal.Audit(evidence, file)
	took := cpuTime() - before
	runtime.ReadMemStats(&now)
	f.allocs = float64(now.Mallocs-start.Mallocs) / float64(f.events) * 1000
	if err == nil && (report.ExitCode() != 0 || report.RecordsChecked != uint64(f.events)) {
		err = fmt.Errorf("the example does not verify:\n%s", report.Text())
	}
	return took, err
}

// hashAlone is the floor: one hash of each line, and nothing else.
func hashAlone(path string) (time.Duration, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	before := cpuTime()
	lines := bufio.NewReaderSize(file, 1<<17)
	var last [sha256.Size]byte
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			break
		}
		last = sha256.Sum256(line)
	}
	_ = last
	return cpuTime() - before, nil
}

// commits measures one record a commit, alone and from 64 writers, and proofs from what was stored.
func (f *journalFigures) commits(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "deed-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kept, err := sqlite.Open(ctx, dir, sqlite.Options{Origin: "bench.example"})
	if err != nil {
		return err
	}
	defer kept.Close()
	var n atomic.Int64
	event := func() action.Event {
		id := n.Add(1)
		run := action.Run{ID: action.RunID(fmt.Sprintf("run_%026d", id)), Key: fmt.Sprint("key-", id), Actor: action.Actor{Kind: "process", Identity: "uid=1", Strength: action.StrengthPeerPIDFD}}
		return action.Event{ID: action.EventID(fmt.Sprintf("evt_%026d", id)), Kind: action.RunStarted, Run: run.ID, RunBody: &run}
	}
	put := func(ctx context.Context, events int) error {
		return kept.Commit(ctx, func(tx store.Tx) error {
			for range events {
				if err := tx.Append(event()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	found, err := inTurn(s, map[string]func() (measured, error){
		"alone": func() (measured, error) {
			return load(ctx, 1, s.duration, func(ctx context.Context, _, _ int) error { return put(ctx, 1) })
		},
		"many": func() (measured, error) {
			return load(ctx, 64, s.duration, func(ctx context.Context, _, _ int) error { return put(ctx, 1) })
		},
	})
	if err != nil {
		return err
	}
	f.alone, f.many = found["alone"], found["many"]
	for kept.Size() < int64(s.stored) {
		if err := put(ctx, 1000); err != nil {
			return err
		}
	}
	f.stored = kept.Size()
	const proofs = 2000
	at := uint64(1)
	before := cpuTime()
	for range proofs {
		at = (at*7919 + 13) % uint64(f.stored)
		if _, err := journal.ProveInclusion(uint64(f.stored), at, kept.Tree(context.WithoutCancel(ctx))); err != nil {
			return err
		}
	}
	f.proof = (cpuTime() - before) / proofs
	return nil
}

// rows prints them beside their budgets.
func (f journalFigures) rows(w *tabwriter.Writer, sync measured) {
	row := func(what, got, budget string) { fmt.Fprintf(w, "%s\t%s\t%s\n", what, got, budget) }
	row("one record durable, 1 writer ÷ raw append and fsync", ratio(f.alone.rate, sync.rate), "≥ 0.5")
	row("records durable, 64 writers ÷ raw append and fsync", ratio(f.many.rate, sync.rate), "≥ 15")
	row("p50 of a record, 64 writers ÷ raw p50", ratio(float64(f.many.p50), float64(sync.p50)), "≤ 4")
	row(fmt.Sprintf("verify of %d events, millions per CPU second", f.events), fmt.Sprintf("%.2f", f.perCPU/1e6), "≥ 0.4")
	row("the same ÷ SHA-256 of the same lines", fmt.Sprintf("%.2f", f.ofSHA), "≥ 0.2")
	row("allocations per 1,000 verified events", fmt.Sprintf("%.1f", f.allocs), "≤ 50")
	row("heap while verifying, MiB", fmt.Sprintf("%.1f", float64(f.heap)/(1<<20)), "–")
	row(fmt.Sprintf("receipt of one event at %d records, bytes", f.events), fmt.Sprint(f.receipt), "≤ 2500")
	row("CPU of checking a receipt", f.check.Round(time.Microsecond).String(), "≤ 0.2 ms")
	row(fmt.Sprintf("CPU of a proof from the store with %d records", f.stored), f.proof.Round(time.Microsecond).String(), "≤ 0.1 ms")
}
