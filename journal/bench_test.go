package journal

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// exampleFields is an event of the size and shape that a gateway writes.
func exampleFields(i int) map[string]any {
	return map[string]any{
		"event": "action.completed", "event_id": fmt.Sprintf("evt_01926f3e-8a1c-7b2d-9c3e-%012x", i), "action_id": "act_01926f3e-8a1c-7b2d-9c3e-5f6a7b8c9d0e",
		"after": LeafHash([]byte{byte(i)}), "time": time.Date(2026, 10, 5, 10, 0, i%60, 1371000, time.UTC), "attempt": i % 5,
		"actor": map[string]any{"id": "signed-process:com.example.agent", "uid": 1000, "evidence": []string{"pidfd", "digest"}},
		"state": "completed", "effect": "effect_proven", "target": "deploy-api.internal.example", "bytes_sent": 1024 + i, "quiet": false,
		"summary": "Release of “grün” to everyone in us-east-1.\nDone.", "arguments_commitment": LeafHash([]byte{byte(i), 1}),
	}
}

func exampleRecords(t testing.TB, n int) []Record {
	t.Helper()
	chain, err := NewChain("gw.example/audit/test-1")
	if err != nil {
		t.Fatal(err)
	}
	var records []Record
	for i := range n {
		var r Record
		if i == 0 {
			r, err = chain.Open(map[string]any{"time": time.Date(2026, 10, 5, 9, 0, 0, 0, time.UTC)})
		} else {
			r, err = chain.Next(exampleFields(i))
		}
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

func export(records []Record) (lines []byte) {
	for _, r := range records {
		lines = AppendLine(lines, r)
	}
	return lines
}

func BenchmarkVerify(b *testing.B) {
	const n = 1000
	lines := export(exampleRecords(b, n))
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		result, err := Verify(bytes.NewReader(lines))
		if err != nil || result.Chain != Valid || result.RecordsChecked != n {
			b.Fatal(result, err)
		}
	}
	b.ReportMetric(float64(len(lines))/n, "bytes/event")
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkVerifierAdd(b *testing.B) {
	records := exampleRecords(b, 1000)
	b.ReportAllocs()
	var v Verifier
	i := 0
	for b.Loop() {
		if i == len(records) {
			v, i = Verifier{digest: v.digest}, 0
		}
		if err := v.Add(records[i].Hash, records[i].Body); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkCheckProfile(b *testing.B) {
	body := exampleRecords(b, 2)[1].Body
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckProfile(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLeafHash(b *testing.B) {
	body := exampleRecords(b, 2)[1].Body
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		LeafHash(body)
	}
}

func BenchmarkChainNext(b *testing.B) {
	chain, err := ResumeChain("gw.example/audit/test-1", 1, Hash{1})
	if err != nil {
		b.Fatal(err)
	}
	fields := exampleFields(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := chain.Next(fields); err != nil {
			b.Fatal(err)
		}
		chain.Commit()
	}
}
