package places

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/journal"
)

// S3 keeps one object per checkpoint in a bucket with object lock. Each is locked in compliance mode: until its time is over
// nobody can change or remove that version, the owner of the account included. A later version under the same name, or a
// marker that hides it, changes nothing: every version is read.
type S3 struct {
	name   string
	set    S3Settings
	keys   []journal.Key
	client *minio.Client
	locks  bool   // the bucket was asked whether it locks
	kept   []byte // the newest checkpoint that was put there, so that none is put there twice
}

// S3Settings say where the bucket is and how long its objects are locked.
type S3Settings struct {
	Endpoint             *url.URL // https, or http on loopback
	Region               string
	Bucket               string
	Prefix               string // of the names of objects; "" or ending in /
	AccessKey, SecretKey vault.Source
	Retain               time.Duration
	Now                  func() time.Time
}

// NewS3 is a place in a bucket. It asks nobody yet.
func NewS3(name string, set S3Settings, keys []journal.Key) (*S3, error) {
	client, err := minio.New(set.Endpoint.Host, &minio.Options{
		Creds: credentials.New(&source{set.AccessKey, set.SecretKey}), Secure: set.Endpoint.Scheme == "https", Region: set.Region,
		BucketLookup: minio.BucketLookupAuto, MaxRetries: 1, // the anchor tries again
	})
	if err != nil {
		return nil, err
	}
	return &S3{name: name, set: set, keys: keys, client: client}, nil
}

// source reads the credential anew for each request, so that a rotated one is used at once.
type source struct{ access, secret vault.Source }

// Retrieve reads the credential in the moment of signing.
func (s *source) Retrieve() (credentials.Value, error) {
	access, err := s.access.Open()
	if err != nil {
		return credentials.Value{}, fmt.Errorf("access_key: %w", err)
	}
	secret, err := s.secret.Open()
	if err != nil {
		return credentials.Value{}, fmt.Errorf("secret_key: %w", err)
	}
	return credentials.Value{AccessKeyID: access.Reveal(), SecretAccessKey: secret.Reveal(), SignerType: credentials.SignatureV4}, nil
}

// RetrieveWithCredContext is Retrieve.
func (s *source) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return s.Retrieve()
}

// IsExpired makes every request read it again.
func (s *source) IsExpired() bool { return true }

// Name tells it apart from other places.
func (s *S3) Name() string { return s.name }

// objectName begins with what is left to the largest size, so that the newest checkpoint is listed first.
func (s *S3) objectName(size uint64) string {
	return fmt.Sprintf("%s%016d-%d%s", s.set.Prefix, journal.MaxInteger-size, size, suffix)
}

func (s *S3) sizeOf(object string) (size uint64, ok bool) {
	_, rest, _ := strings.Cut(strings.TrimPrefix(object, s.set.Prefix), "-")
	size, err := strconv.ParseUint(strings.TrimSuffix(rest, suffix), 10, 64)
	return size, err == nil && size <= journal.MaxInteger && s.objectName(size) == object
}

// listed is how many names are asked for at once; the newest checkpoint is the first of them.
const listed = 50

// Check compares the journal with every version of the newest checkpoint.
func (s *S3) Check(ctx context.Context, head anchor.Head) error {
	if err := s.mustLock(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	newest := ""
	for o := range s.client.ListObjects(ctx, s.set.Bucket, minio.ListObjectsOptions{Prefix: s.set.Prefix, WithVersions: true, Recursive: true, MaxKeys: listed}) {
		if o.Err != nil {
			return o.Err
		}
		if _, ours := s.sizeOf(o.Key); !ours || o.IsDeleteMarker {
			continue
		}
		if newest != "" && o.Key != newest {
			break
		}
		newest = o.Key
		found, err := s.read(ctx, o)
		if err != nil {
			return err
		}
		if err := holds(ctx, s.name, s.keys, found, head); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *S3) read(ctx context.Context, o minio.ObjectInfo) ([]byte, error) {
	object, err := s.client.GetObject(ctx, s.set.Bucket, o.Key, minio.GetObjectOptions{VersionID: o.VersionID})
	if err != nil {
		return nil, err
	}
	defer object.Close()
	return io.ReadAll(io.LimitReader(object, maxCheckpoint))
}

// mustLock refuses a bucket that would keep objects without locking them.
func (s *S3) mustLock(ctx context.Context) error {
	if s.locks {
		return nil
	}
	enabled, _, _, _, err := s.client.GetObjectLockConfig(ctx, s.set.Bucket)
	var said minio.ErrorResponse
	switch {
	case err == nil && enabled == "Enabled":
		s.locks = true
		return nil
	case err == nil, errors.As(err, &said) && said.StatusCode == http.StatusNotFound && said.Code == "ObjectLockConfigurationNotFoundError":
		return fmt.Errorf("the bucket %s has no object lock, so whoever may write there may also change what is there; make one with object lock", s.set.Bucket)
	}
	return err
}

// Keep puts the checkpoint there, locked.
func (s *S3) Keep(ctx context.Context, head anchor.Head) ([]byte, error) {
	if bytes.Equal(s.kept, head.Signed) {
		return nil, nil
	}
	if err := s.mustLock(ctx); err != nil {
		return nil, err
	}
	_, err := s.client.PutObject(ctx, s.set.Bucket, s.objectName(head.Size), bytes.NewReader(head.Signed), int64(len(head.Signed)), minio.PutObjectOptions{
		ContentType: "text/plain; charset=utf-8", SendContentMd5: true, // which a locked object needs
		Mode: minio.Compliance, RetainUntilDate: s.set.Now().UTC().Add(s.set.Retain),
	})
	if err == nil {
		s.kept = bytes.Clone(head.Signed)
	}
	return nil, err
}
