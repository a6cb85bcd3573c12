package provider_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/lab/provider"
)

func TestChargeIsInTheLedgerFileWhenTheAnswerComes(t *testing.T) {
	r := newRig(t)
	got := r.expect(r.charge("k1"), http.StatusCreated)

	row := r.expectEffects(1)[0]
	sum := sha256.Sum256([]byte(goodCharge))
	if row.Seq != 1 || row.Op != "charge" || row.Key != "k1" || row.Status != 201 || row.RequestDigest != hex.EncodeToString(sum[:]) {
		t.Errorf("row %+v, want charge 1 with key k1, status 201 and the digest of the body", row)
	}
	if row.RequestID == "" || row.RequestID != got.header.Get("Request-Id") {
		t.Errorf("request id %q in the row and %q in the answer, want them equal", row.RequestID, got.header.Get("Request-Id"))
	}
	if string(row.Body) != got.body {
		t.Errorf("row has body %s, want the answer %s", row.Body, got.body)
	}

	var charge struct {
		ID, Object, Currency, Customer string
		Amount                         json.Number
		Metadata                       map[string]string
		Created                        int64
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(got.body)))
	decoder.UseNumber()
	if err := decoder.Decode(&charge); err != nil {
		t.Fatal(err)
	}
	if charge.ID != row.ID || !strings.HasPrefix(charge.ID, "ch_") || charge.Object != "charge" || charge.Amount != "25000" ||
		charge.Currency != "usd" || charge.Customer != "cus_1" || charge.Metadata["idem_key"] != "k1" || charge.Created != row.Time.Unix() {
		t.Errorf("charge %+v does not say what was asked for", charge)
	}
}

func TestIntegersKeepTheirDigits(t *testing.T) {
	r := newRig(t)
	const digits = "90071992547409931234567890"
	got := r.expect(r.post("/v1/charges", "", `{"amount":`+digits+`,"currency":"usd","metadata":{"n":`+digits+`}}`), http.StatusCreated)
	if n := strings.Count(got.body, digits); n != 2 {
		t.Errorf("the answer has the digits %d times, want 2: %s", n, got.body)
	}
	if n := strings.Count(string(r.expectEffects(1)[0].Body), digits); n != 2 {
		t.Errorf("the ledger has the digits %d times, want 2", n)
	}
}

func TestInvalidRequestsHaveNoEffect(t *testing.T) {
	r := newRig(t)
	for body, code := range map[string]string{
		``:                                "not_json",
		`{"amount":1`:                     "not_json",
		`{"amount":1} {}`:                 "not_json",
		`{"amount":1}`:                    "invalid_currency",
		`{"amount":1.5,"currency":"usd"}`: "invalid_amount",
		`{"amount":1e3,"currency":"usd"}`: "invalid_amount",
		`{"amount":"1","currency":"usd"}`: "invalid_amount",
		`{"amount":-1,"currency":"usd"}`:  "invalid_amount",
		`{"amount":0,"currency":"usd"}`:   "invalid_amount",
		`{"currency":"usd"}`:              "invalid_amount",
		`{"amount":1,"currency":"usd","metadata":["a"]}`: "invalid_metadata",
	} {
		r.expectCode(r.post("/v1/charges", "k", body), http.StatusBadRequest, code)
	}
	r.expectCode(r.post("/v1/charge", "", goodCharge), http.StatusNotFound, "no_such_route")
	r.expectEffects(0)

	// A refusal is not stored: the key is still free.
	r.expect(r.charge("k"), http.StatusCreated)
}

func TestRefundNeedsACharge(t *testing.T) {
	r := newRig(t)
	r.expectCode(r.post("/v1/refund", "", `{"charge":"ch_none","amount":1}`), http.StatusNotFound, "resource_missing")
	r.expect(r.charge(""), http.StatusCreated)
	id := r.Effects()[0].ID
	got := r.expect(r.post("/v1/refund", "k2", `{"charge":"`+id+`","amount":5}`), http.StatusCreated)
	row := r.expectEffects(2)[1]
	if row.Op != "refund" || !strings.HasPrefix(row.ID, "re_") || !strings.Contains(got.body, id) {
		t.Errorf("row %+v and answer %v, want a refund of %s", row, got, id)
	}
}

func TestOtherWritesAreEffectsNamedByMethodAndPath(t *testing.T) {
	r := newRig(t)
	for i, c := range []struct {
		method, path, body, value string
		status                    int
	}{
		{"POST", "/v1/objects/a", `{"n":1}`, `{"n":1}`, 201},
		{"PUT", "/v1/objects/a%2Fb", `plain`, `"plain"`, 200},
		{"PATCH", "/v1/objects/a", `[1]`, `[1]`, 200},
		{"DELETE", "/v1/objects/a", ``, `null`, 200},
		{"POST", "/v1/services/web/releases", `{"tag":"v1"}`, `{"tag":"v1"}`, 201},
	} {
		got := r.expect(r.send(t.Context(), c.method, c.path, "", c.body), c.status)
		row := r.expectEffects(i + 1)[i]
		if row.Op != c.method+" "+c.path || string(row.Body) != got.body || !strings.Contains(got.body, `"value":`+c.value) {
			t.Errorf("%s %s: row %+v, answer %v; want the value %s", c.method, c.path, row, got, c.value)
		}
	}
	r.expectCode(r.send(t.Context(), "PUT", "/v1/services/web/releases", "", ""), http.StatusNotFound, "no_such_route")
	r.expectCode(r.post("/v1/objects/a/b", "", ""), http.StatusNotFound, "no_such_route")
}

func TestSameKeyAndBodyGetTheStoredAnswerAndNoSecondEffect(t *testing.T) {
	r := newRig(t)
	first := r.expect(r.charge("k1"), http.StatusCreated)
	if got := first.header.Get("Idempotent-Replayed"); got != "" {
		t.Errorf("the first answer says Idempotent-Replayed %q, want nothing", got)
	}
	r.expectReplay(r.charge("k1"), first)
	r.expectEffects(1)
	r.expect(r.charge("k2"), http.StatusCreated)
	r.expect(r.charge(""), http.StatusCreated)
	r.expect(r.charge(""), http.StatusCreated)
	r.expectEffects(4)
}

func TestSameKeyForAnotherRequestIsRefused(t *testing.T) {
	r := newRig(t)
	r.expect(r.charge("k1"), http.StatusCreated)
	other := strings.Replace(goodCharge, "25000", "25001", 1)
	r.expectCode(r.post("/v1/charges", "k1", other), http.StatusUnprocessableEntity, "idempotency_key_reused")
	r.expectCode(r.post("/v1/objects/a", "k1", goodCharge), http.StatusUnprocessableEntity, "idempotency_key_reused")
	r.expectEffects(1)
}

func TestConcurrentEqualKeysHaveOneEffectAndOneAnswer(t *testing.T) {
	r := newRig(t)
	const callers = 20
	var replies []<-chan reply
	for range callers {
		replies = append(replies, r.postLater(t.Context(), "/v1/charges", "k1", goodCharge))
	}
	bodies, replayed := make(map[string]bool), 0
	for _, later := range replies {
		got := r.expect(<-later, http.StatusCreated)
		bodies[got.body] = true
		if got.header.Get("Idempotent-Replayed") == "true" {
			replayed++
		}
	}
	r.expectEffects(1)
	if len(bodies) != 1 || replayed != callers-1 {
		t.Errorf("%d different answers, %d replayed; want 1 and %d", len(bodies), replayed, callers-1)
	}
}

func TestIgnoredKeysHaveAnEffectEachTime(t *testing.T) {
	r := newRig(t)
	r.set(provider.Switches{Keys: provider.IgnoreKey})
	r.expect(r.charge("k1"), http.StatusCreated)
	got := r.expect(r.charge("k1"), http.StatusCreated)
	r.expectEffects(2)

	// The newest effect is the one that the key stands for.
	r.set(provider.Switches{})
	r.expectReplay(r.charge("k1"), got)
}

func TestAcceptChangedBodyGivesTheFirstAnswerForAnotherBody(t *testing.T) {
	r := newRig(t)
	r.set(provider.Switches{Keys: provider.AcceptChangedBody})
	first := r.expect(r.charge("k1"), http.StatusCreated)
	r.expectReplay(r.post("/v1/charges", "k1", `{"amount":1,"currency":"eur"}`), first)
	r.expectEffects(1)
}

func TestKeyCountsAsNewAfterItsRetention(t *testing.T) {
	for _, c := range []struct {
		set, kept time.Duration
	}{
		{0, provider.DefaultKeyRetention},
		{2 * time.Second, 2 * time.Second},
	} {
		r := newRig(t)
		clock := r.stopClock()
		r.set(provider.Switches{KeyRetention: c.set})
		first := r.expect(r.charge("k1"), http.StatusCreated)
		clock.turn(c.kept - 1)
		r.expectReplay(r.charge("k1"), first)
		clock.turn(1)
		second := r.expect(r.charge("k1"), http.StatusCreated)
		r.expectEffects(2)

		// The new effect is kept as long again.
		clock.turn(c.kept - 1)
		r.expectReplay(r.charge("k1"), second)
	}
}

func TestLookupFindsByIDAndByMetadata(t *testing.T) {
	r := newRig(t)
	first := r.expect(r.charge(""), http.StatusCreated)
	r.expect(r.post("/v1/charges", "", `{"amount":7,"currency":"usd","metadata":{"idem_key":"k2","n":3}}`), http.StatusCreated)
	r.expect(r.post("/v1/objects/a", "", `{"metadata":{"idem_key":"k1"}}`), http.StatusCreated)

	got := r.expect(r.get("/v1/charges/"+r.Effects()[0].ID), http.StatusOK)
	if got.body != first.body {
		t.Errorf("got %v, want %v", got, first)
	}
	r.expectCode(r.get("/v1/charges/ch_none"), http.StatusNotFound, "resource_missing")
	r.expectCode(r.get("/v1/charges/"+r.Effects()[2].ID), http.StatusNotFound, "resource_missing")

	for query, want := range map[string]string{
		"?metadata[idem_key]=k1":               `{"object":"list","data":[` + first.body + `]}`,
		"?metadata%5Bidem_key%5D=k1":           `{"object":"list","data":[` + first.body + `]}`,
		"?metadata[idem_key]=k1&metadata[n]=3": `{"object":"list","data":[]}`,
		"?metadata[idem_key]=none":             `{"object":"list","data":[]}`,
		"?metadata[absent]=":                   `{"object":"list","data":[]}`,
		"?metadata[idem_key]=k2&metadata[n]=3": `{"object":"list","data":[` + string(r.Effects()[1].Body) + `]}`,
		"":                                     `{"object":"list","data":[` + first.body + "," + string(r.Effects()[1].Body) + `]}`,
	} {
		if got := r.expect(r.get("/v1/charges"+query), http.StatusOK); got.body != want {
			t.Errorf("%q: got %v, want %s", query, got, want)
		}
	}
	r.expectCode(r.get("/v1/charges?idem_key=k1"), http.StatusBadRequest, "invalid_query")
}

func TestLookupShowsAnEffectOnlyAfterTheLag(t *testing.T) {
	r := newRig(t)
	clock := r.stopClock()
	r.set(provider.Switches{LookupLag: 2 * time.Second})
	r.expect(r.charge(""), http.StatusCreated)
	byID := "/v1/charges/" + r.expectEffects(1)[0].ID
	clock.turn(2*time.Second - 1)
	r.expect(r.get(byID), http.StatusNotFound)
	if got := r.expect(r.get("/v1/charges?metadata[idem_key]=k1"), http.StatusOK); !strings.Contains(got.body, `"data":[]`) {
		t.Errorf("got %v before the lag is over, want an empty list", got)
	}
	clock.turn(1)
	r.expect(r.get(byID), http.StatusOK)
}

func TestLookupThatIsOffIsNotAnAbsence(t *testing.T) {
	r := newRig(t)
	r.set(provider.Switches{Lookup: provider.LookupOff})
	r.expect(r.charge(""), http.StatusCreated)
	r.expectCode(r.get("/v1/charges/"+r.Effects()[0].ID), http.StatusMethodNotAllowed, "lookup_off")
	r.expectCode(r.get("/v1/charges?metadata[idem_key]=k1"), http.StatusMethodNotAllowed, "lookup_off")
}
