package canonical

import (
	"fmt"
	"strings"
	"testing"
)

// oneKiB is a document of about 1 KiB of the kind that tools receive.
func oneKiB() []byte {
	var items []string
	for i := range 9 {
		items = append(items, fmt.Sprintf(
			`{"sku": "part-%04d", "quantity": %d, "unit_price": "19.90", "note": "h\u00f6lzern, gr\u00fcn", "gift": false}`, i, i+1))
	}
	return []byte(`{"service": "billing", "region": "us-east-1", "customer": {"id": 9007199254740993, "tags": ["a", "b"]}, "items": [` +
		strings.Join(items, ", ") + `]}`)
}

func BenchmarkCanonicalize1KiB(b *testing.B) {
	document := oneKiB()
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Canonicalize(document); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse1KiB(b *testing.B) {
	document := oneKiB()
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(document); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshal1KiB(b *testing.B) {
	value, err := Parse(oneKiB())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Marshal(value); err != nil {
			b.Fatal(err)
		}
	}
}
