package httpexec

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"testing"

	"deed.dev/deed/internal/action"
)

const benchAnswer = `{"id":"ch_1","object":"charge","amount":100,"currency":"eur","created":1767225600,"metadata":{}}`

func benchServer(b *testing.B) *rawServer {
	answer := "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(benchAnswer)) + "\r\n\r\n" + benchAnswer
	return newRawServer(b, false, func(c *rawConn) {
		for {
			req, err := http.ReadRequest(c.r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			c.say(answer)
		}
	})
}

// BenchmarkPerform and BenchmarkStandardClient send the same request to the same server over a kept connection.
func BenchmarkPerform(b *testing.B) {
	s := benchServer(b)
	for name, credential := range map[string]string{"credential": "bearer", "none": ""} {
		b.Run(name, func(b *testing.B) {
			executor := newExecutor(b, Options{Vault: newVault(b, s.base)})
			d := dispatchTo(b, s.base)
			d.Operation.Credential = credential
			b.ReportAllocs()
			for b.Loop() {
				if out := executor.Perform(b.Context(), d); out.Certainty != action.EffectProven {
					b.Fatalf("%+v", out)
				}
			}
		})
	}
}

func BenchmarkStandardClient(b *testing.B) {
	s := benchServer(b)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	d := dispatchTo(b, s.base)
	b.ReportAllocs()
	for b.Loop() {
		req, err := http.NewRequest("POST", d.Operation.URL(), bytes.NewReader(d.Operation.Body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", d.Token)
		req.Header.Set("Authorization", "Bearer "+canary)
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil {
			b.Fatal(err)
		}
		_ = resp.Body.Close()
	}
}
