package provider

import (
	"encoding/json"
	"net/http"
	"time"
)

// job is work that the provider has taken on and does later. Jobs live in memory alone: a provider that stops forgets those
// that were not done, and they have no effect.
type job struct {
	id      string
	taken   *exchange // the request that asked for it
	key     string
	sum     string
	started time.Time
	status  JobStatus
	charge  json.RawMessage // once done
}

// JobStatus says how far a job is.
type JobStatus string

// How far a job is. Only a done one has had its effect.
const (
	JobRunning   JobStatus = "running"
	JobDone      JobStatus = "done"
	JobCancelled JobStatus = "cancelled"
)

// takeJob accepts a charge that is made later. The same key gets the same job.
func (s *Server) takeJob(x *exchange) answer {
	key, sum := x.r.Header.Get("Idempotency-Key"), digest(x.body)
	if _, refused := newCharge(x, s.Now().UTC()); refused != nil {
		return *refused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now().UTC()
	for _, j := range s.jobs {
		if key == "" || j.key != key || s.switches.Keys == IgnoreKey || now.Sub(j.started) >= s.switches.KeyRetention {
			continue
		}
		if j.sum != sum && s.switches.Keys != AcceptChangedBody {
			return refusal(http.StatusUnprocessableEntity, "idempotency_key_reused", "the key belongs to another request")
		}
		a := j.answer(http.StatusAccepted)
		a.header = http.Header{"Idempotent-Replayed": {"true"}}
		return a
	}
	j := &job{id: "job_" + randomID(), taken: x, key: key, sum: sum, started: now, status: JobRunning}
	s.jobs = append(s.jobs, j)
	if !s.closed {
		s.busy.Go(func() { s.work(j) })
	}
	return j.answer(http.StatusAccepted)
}

// work ends a job when its time is over. Switches that are set anew count from then on.
func (s *Server) work(j *job) {
	begun := time.Now()
	for {
		s.mu.Lock()
		switches, freed := s.switches, s.freed
		s.mu.Unlock()
		var over <-chan time.Time
		if switches.Jobs != HoldJobs {
			over = time.After(switches.JobTime - time.Since(begun))
		}
		select {
		case <-over:
			s.endJob(j, switches.Jobs)
			return
		case <-freed:
		case <-s.closing:
			return
		}
	}
}

// endJob makes the charge of a job, or cancels it. The row is on disk before anybody is told that the job is done.
func (s *Server) endJob(j *job, how JobMode) {
	status, row := JobCancelled, Row{}
	if how != CancelJobs {
		var refused *answer
		if row, _, refused = s.findOrAppend(j.taken, "charge", newCharge); refused == nil && s.ledger.sync(row.Seq) == nil {
			status = JobDone
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j.status, j.charge = status, row.Body
	s.wake()
}

// findJob says how far a job is.
func (s *Server) findJob(id string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.id == id {
			return j.answer(http.StatusOK)
		}
	}
	return refusal(http.StatusNotFound, "resource_missing", "no such job: "+id)
}

func (j *job) answer(status int) answer {
	return answer{status: status, body: encode(struct {
		ID     string          `json:"id"`
		Object string          `json:"object"`
		Status JobStatus       `json:"status"`
		Charge json.RawMessage `json:"charge,omitempty"`
	}{j.id, "job", j.status, j.charge})}
}
