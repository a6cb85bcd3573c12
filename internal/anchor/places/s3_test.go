package places_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/anchor/anchortest"
	"deed.dev/deed/internal/anchor/places"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/journal"
)

const (
	accessVariable, secretVariable = "DEED_TEST_S3_ACCESS", "DEED_TEST_S3_SECRET"
	access, secret                 = "deed-test-access", "canary-s3-secret-key"
)

// s3 is a real server with two buckets: one that locks and one that does not.
type s3 struct {
	url   *url.URL
	admin *minio.Client
}

func newS3(t *testing.T) *s3 {
	t.Helper()
	t.Setenv(accessVariable, access)
	t.Setenv(secretVariable, secret)
	u, err := url.Parse(anchortest.Versitygw(t, access, secret))
	if err != nil {
		t.Fatal(err)
	}
	admin, err := minio.New(u.Host, &minio.Options{Creds: credentials.NewStaticV4(access, secret, ""), Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	for bucket, locks := range map[string]bool{"locked": true, "plain": false} {
		if err := admin.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{ObjectLocking: locks}); err != nil {
			t.Fatal(err)
		}
	}
	return &s3{u, admin}
}

func (s *s3) place(t *testing.T, bucket, prefix string, keys []journal.Key) *places.S3 {
	t.Helper()
	p, err := places.NewS3("s3", places.S3Settings{
		Endpoint: s.url, Region: "us-east-1", Bucket: bucket, Prefix: prefix, Retain: 24 * time.Hour, Now: time.Now,
		AccessKey: vault.Source{Env: accessVariable}, SecretKey: vault.Source{Env: secretVariable},
	}, keys)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// AU-10: a checkpoint in a bucket with object lock cannot be changed or removed by whoever put it there, not even by the owner
// of the bucket; the server that refuses is a real one. What is put over it or hides it is seen through.
func TestALockedCheckpointStays(t *testing.T) {
	s := newS3(t)
	l := anchortest.New(t, 900)
	p := s.place(t, "locked", "audit/", []journal.Key{l.Signer.Key()})
	keep(t, p, l.MustHead(t))
	l.Add(50)
	keep(t, p, l.MustHead(t))
	keep(t, p, l.MustHead(t)) // the same again is no new version

	versions := s.versions(t, "audit/")
	if len(versions) != 2 || !strings.Contains(versions[0].Key, "-950.") || !strings.Contains(versions[1].Key, "-900.") {
		t.Fatalf("the bucket holds %v, want 950 before 900", versions)
	}
	newest := versions[0]
	info, err := s.admin.StatObject(t.Context(), "locked", newest.Key, minio.StatObjectOptions{VersionID: newest.VersionID})
	if err != nil {
		t.Fatal(err)
	}
	until, err := time.Parse(time.RFC3339, info.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	if mode := info.Metadata.Get("X-Amz-Object-Lock-Mode"); mode != "COMPLIANCE" || err != nil || time.Until(until) < 23*time.Hour {
		t.Errorf("it is locked in mode %q until %s, %v; want compliance for a day", mode, until, err)
	}

	// The history that the attacker would like, under the same name, is a later version and replaces nothing.
	fork := l.Fork(500, 450).MustHead(t)
	if _, err := s.admin.PutObject(t.Context(), "locked", newest.Key, bytes.NewReader(fork.Signed), int64(len(fork.Signed)), locked()); err != nil {
		t.Fatal(err)
	}
	s.mustHave(t, newest, l.MustHead(t).Signed)
	s.conflict(t, l, "overwritten")

	// Whoever holds the gateway's own credential, and the server's root credential here, tries everything.
	for what, try := range map[string]func() error{
		"remove the version": func() error {
			return s.admin.RemoveObject(t.Context(), "locked", newest.Key, minio.RemoveObjectOptions{VersionID: newest.VersionID})
		},
		"remove it past governance": func() error {
			return s.admin.RemoveObject(t.Context(), "locked", newest.Key, minio.RemoveObjectOptions{VersionID: newest.VersionID, GovernanceBypass: true})
		},
		"shorten the lock": func() error {
			soon, compliance := time.Now().Add(time.Hour), minio.Compliance
			return s.admin.PutObjectRetention(t.Context(), "locked", newest.Key, minio.PutObjectRetentionOptions{VersionID: newest.VersionID, Mode: &compliance, RetainUntilDate: &soon})
		},
		"weaken the lock": func() error {
			later, governance := time.Now().Add(48*time.Hour), minio.Governance
			return s.admin.PutObjectRetention(t.Context(), "locked", newest.Key, minio.PutObjectRetentionOptions{VersionID: newest.VersionID, Mode: &governance, RetainUntilDate: &later})
		},
	} {
		if err := try(); err == nil {
			t.Errorf("%s: the server allowed it", what)
		}
	}
	s.mustHave(t, newest, l.MustHead(t).Signed)

	// A marker hides it from a plain listing, and not from us.
	if err := s.admin.RemoveObject(t.Context(), "locked", newest.Key, minio.RemoveObjectOptions{}); err == nil {
		s.mustHave(t, newest, l.MustHead(t).Signed)
	}
	s.conflict(t, l, "hidden by a marker")

}

func locked() minio.PutObjectOptions {
	return minio.PutObjectOptions{SendContentMd5: true, Mode: minio.Compliance, RetainUntilDate: time.Now().Add(24 * time.Hour)}
}

// Every version of the newest checkpoint counts, whichever came last.
func TestEveryVersionIsRead(t *testing.T) {
	s := newS3(t)
	l := anchortest.New(t, 10)
	keys := []journal.Key{l.Signer.Key()}
	fork := l.Fork(5, 5).MustHead(t)
	const name = "9007199254740981-10.checkpoint"
	if _, err := s.admin.PutObject(t.Context(), "locked", name, bytes.NewReader(fork.Signed), int64(len(fork.Signed)), minio.PutObjectOptions{SendContentMd5: true}); err != nil {
		t.Fatal(err)
	}
	keep(t, s.place(t, "locked", "", keys), l.MustHead(t))
	if n := len(s.versions(t, "")); n != 2 {
		t.Fatalf("%d versions, want 2", n)
	}
	for what, bad := range map[string]*anchortest.Log{"the one": l, "the other": l.Fork(5, 6)} {
		var conflict *anchor.ConflictError
		if err := s.place(t, "locked", "", keys).Check(t.Context(), bad.MustHead(t)); !errors.As(err, &conflict) {
			t.Errorf("%s: got %v, want a conflict: two histories lie there", what, err)
		}
	}
}

// conflict holds the place against histories that the newest checkpoint rules out.
func (s *s3) conflict(t *testing.T, l *anchortest.Log, what string) {
	t.Helper()
	for _, bad := range []*anchortest.Log{l.Fork(900, 0), l.Fork(500, 500), l.Fork(500, 450)} {
		err := s.place(t, "locked", "audit/", []journal.Key{l.Signer.Key()}).Check(t.Context(), bad.MustHead(t))
		var conflict *anchor.ConflictError
		if !errors.As(err, &conflict) || conflict.Held != 950 {
			t.Errorf("%s, a journal of %d: got %v, want a conflict at 950", what, bad.Size(), err)
		}
	}
}

func (s *s3) versions(t *testing.T, prefix string) (list []minio.ObjectInfo) {
	t.Helper()
	for o := range s.admin.ListObjects(t.Context(), "locked", minio.ListObjectsOptions{Prefix: prefix, Recursive: true, WithVersions: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		list = append(list, o)
	}
	return list
}

func (s *s3) mustHave(t *testing.T, o minio.ObjectInfo, want []byte) {
	t.Helper()
	object, err := s.admin.GetObject(t.Context(), "locked", o.Key, minio.GetObjectOptions{VersionID: o.VersionID})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(object); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the version is not what it was: %v", err)
	}
}

// A bucket without object lock is refused, and a credential that is wrong, short or gone is an error that does not show it.
func TestBucketsAndCredentials(t *testing.T) {
	s := newS3(t)
	l := anchortest.New(t, 3)
	keys := []journal.Key{l.Signer.Key()}
	head := l.MustHead(t)
	for bucket, want := range map[string]string{"plain": "no object lock", "none": "bucket"} {
		for _, call := range []func() error{
			func() error { return s.place(t, bucket, "", keys).Check(t.Context(), head) },
			func() error { _, err := s.place(t, bucket, "", keys).Keep(t.Context(), head); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("bucket %s: got %v, want %q", bucket, err, want)
			}
		}
	}
	p := s.place(t, "locked", "", keys)
	keep(t, p, head)
	l.Add(1)
	for what, value := range map[string]string{"wrong": "canary-another-key", "short": "canary", "empty": ""} {
		t.Setenv(secretVariable, value)
		if _, err := p.Keep(t.Context(), l.MustHead(t)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("a secret that is %s: got %v", what, err) // AU-25
		}
	}
	t.Setenv(secretVariable, secret)
	keep(t, p, l.MustHead(t)) // it is read anew each time
	if text := fmt.Sprintf("%v %+v", p, p); strings.Contains(text, "canary") {
		t.Error("the place prints its secret")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.place(t, "locked", "", keys).Check(ctx, l.MustHead(t)); err == nil {
		t.Error("a check that was cut off found nothing wrong")
	}
}

func TestConfigOfObjectStorage(t *testing.T) {
	setup := places.Setup{Dir: t.TempDir()}
	good := `sinks:
  - name: bucket
    s3:
      endpoint: https://s3.example
      region: eu-central-1
      bucket: audit-locked
      prefix: prod
      access_key: {env: S3_ACCESS}
      secret_key: {file: s3.secret}
      retain_days: 365
`
	if c, err := loadText(t, setup, good); err != nil || len(c.Sinks) != 1 || c.Sinks[0].Kind != "s3" || c.Sinks[0].Every != time.Minute {
		t.Errorf("got %v, %v", c, err)
	}
	for change, want := range map[[2]string]string{
		{"https://s3.example", "http://s3.example"}:         "loopback only",
		{"https://s3.example", "https://s3.example/path"}:   "a host",
		{"https://s3.example", "https://a:b@s3.example"}:    "a host",
		{"bucket: audit-locked", "bucket: '../x'"}:          "bucket is the name",
		{"retain_days: 365", "retain_days: 0"}:              "retain_days",
		{"retain_days: 365", "retain_days: 1000000"}:        "retain_days",
		{"{env: S3_ACCESS}", "{}"}:                          "access_key: write env",
		{"{env: S3_ACCESS}", "{env: A, file: b}"}:           "access_key: write env",
		{"{env: S3_ACCESS}", "AKIA-canary"}:                 "sinks.yaml:8",
		{"secret_key: {file: s3.secret}", "secret: canary"}: "sinks.yaml:9",
	} {
		c, err := loadText(t, setup, strings.Replace(good, change[0], change[1], 1))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v: got %v, %v, want %q", change, c, err, want)
		}
	}
}
