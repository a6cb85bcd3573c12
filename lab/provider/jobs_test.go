package provider_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/lab/provider"
)

const jobs = "/v1/jobs/charges"

// jobOf reads an answer about a job.
func (r *rig) jobOf(got reply) (job struct {
	ID     string
	Status provider.JobStatus
	Charge struct{ ID string }
}) {
	r.Helper()
	if err := json.Unmarshal([]byte(got.body), &job); err != nil || !strings.HasPrefix(job.ID, "job_") {
		r.Fatalf("got %v, want a job", got)
	}
	return job
}

func TestJobIsTakenOnAtOnceAndHasItsEffectLater(t *testing.T) {
	r := newRig(t)
	r.set(provider.Switches{Jobs: provider.HoldJobs})
	j := r.jobOf(r.expect(r.post(jobs, "k1", goodCharge), http.StatusAccepted))
	if got := r.jobOf(r.expect(r.get("/v1/jobs/"+j.ID), http.StatusOK)); got.Status != provider.JobRunning {
		t.Errorf("the held job is %s", got.Status)
	}
	r.expectEffects(0)
	begun := time.Now()
	r.set(provider.Switches{JobTime: 100 * time.Millisecond})
	r.await(func() bool { return len(r.Effects()) == 1 })
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the job took %s", took)
	}
	r.await(func() bool { return r.jobOf(r.get("/v1/jobs/"+j.ID)).Status == provider.JobDone })
	row := r.expectEffects(1)[0]
	if got := r.jobOf(r.get("/v1/jobs/" + j.ID)); got.Charge.ID != row.ID || row.Op != "charge" || row.Key != "k1" {
		t.Errorf("the job made %s, and the ledger has %+v", got.Charge.ID, row)
	}
	if got := r.expect(r.get("/v1/charges?metadata[idem_key]=k1"), http.StatusOK); !strings.Contains(got.body, row.ID) {
		t.Errorf("the charge is not found by its metadata: %v", got)
	}
}

func TestSameKeyGetsTheSameJob(t *testing.T) {
	r := newRig(t)
	first := r.jobOf(r.expect(r.post(jobs, "k1", goodCharge), http.StatusAccepted))
	r.await(func() bool { return len(r.Effects()) == 1 })
	again := r.expect(r.post(jobs, "k1", goodCharge), http.StatusAccepted)
	if r.jobOf(again).ID != first.ID || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %v, want job %s replayed", again, first.ID)
	}
	r.expectCode(r.post(jobs, "k1", strings.Replace(goodCharge, "25000", "1", 1)), http.StatusUnprocessableEntity, "idempotency_key_reused")
	r.expectEffects(1)
	r.expect(r.post(jobs, "", goodCharge), http.StatusAccepted)
	r.await(func() bool { return len(r.Effects()) == 2 })
}

func TestJobThatIsRefusedCancelledOrForgottenHasNoEffect(t *testing.T) {
	r := newRig(t)
	r.expectCode(r.post(jobs, "k1", `{"amount":0}`), http.StatusBadRequest, "invalid_currency")
	r.set(provider.Switches{Jobs: provider.CancelJobs})
	j := r.jobOf(r.expect(r.post(jobs, "k1", goodCharge), http.StatusAccepted))
	r.await(func() bool { return r.jobOf(r.get("/v1/jobs/"+j.ID)).Status == provider.JobCancelled })
	r.set(provider.Switches{Jobs: provider.HoldJobs})
	r.expect(r.post(jobs, "k2", goodCharge), http.StatusAccepted) // runs until the provider is closed
	r.expectCode(r.get("/v1/jobs/job_none"), http.StatusNotFound, "resource_missing")
	r.expectEffects(0)
}

func TestJobIsTakenOnAlsoWhenItsAnswerIsCut(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.CommitThenDrop, Times: 1})
	if got := r.post(jobs, "k1", goodCharge); !errors.Is(got.err, io.EOF) {
		t.Fatalf("got %v, want the end of the connection", got)
	}
	r.await(func() bool { return len(r.Effects()) == 1 })
	if got := r.expect(r.post(jobs, "k1", goodCharge), http.StatusAccepted); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %v, want the job of the request whose answer was cut", got)
	}
}

func TestCommitThenDelayHasItsEffectAtOnceAndAnswersLate(t *testing.T) {
	r := newRig(t)
	r.fault(provider.Fault{Kind: provider.CommitThenDelay, Delay: 150 * time.Millisecond, Times: 1})
	begun := time.Now()
	late := r.postLater(t.Context(), "/v1/charges", "k1", goodCharge)
	r.await(func() bool { return len(r.Effects()) == 1 })
	if got := r.charge("k1"); got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %v before the late answer, want the effect", got)
	}
	r.expect(<-late, http.StatusCreated)
	if took := time.Since(begun); took < 150*time.Millisecond {
		t.Errorf("the answer came after %s", took)
	}
	r.expectEffects(1)
}

func TestUnfilteredLookupListsEverything(t *testing.T) {
	r := newRig(t)
	r.expect(r.charge(""), http.StatusCreated)
	r.set(provider.Switches{Lookup: provider.LookupUnfiltered})
	if got := r.expect(r.get("/v1/charges?metadata[idem_key]=another"), http.StatusOK); !strings.Contains(got.body, r.Effects()[0].ID) {
		t.Errorf("got %v, want every charge", got)
	}
}
