package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// plain makes a request that has nothing to do with deed.
func plain(t *testing.T, method, url, body string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	client.CloseIdleConnections()
}
