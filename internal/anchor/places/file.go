package places

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/internal/vault"
	"deed.dev/deed/journal"
)

// Setup is what every place is made with, beside its own lines in the file.
type Setup struct {
	Keys []journal.Key // of the journal, the one that signs now and earlier ones
	Dir  string        // for what places have to keep on this side
}

// Config is what the file says.
type Config struct {
	Sinks  []anchor.Sink
	Limits anchor.Limits
}

// file is sinks.yaml.
type file struct {
	Need  *int       `yaml:"need"`
	Max   *maxFile   `yaml:"max_unanchored"`
	Sinks []sinkFile `yaml:"sinks"`
}

type maxFile struct {
	Records *int64 `yaml:"records"`
	Age     string `yaml:"age"`
}

type sinkFile struct {
	Name      string         `yaml:"name"`
	Every     string         `yaml:"every"`
	Witness   *witnessFile   `yaml:"witness"`
	File      *appendedFile  `yaml:"file"`
	Directory *directoryFile `yaml:"directory"`
	Git       *gitFile       `yaml:"git"`
	S3        *s3File        `yaml:"s3"`
}

type witnessFile struct {
	URL string `yaml:"url"`
	Key string `yaml:"key"`
}

type appendedFile struct {
	Path string `yaml:"path"`
}

type directoryFile struct {
	Path string `yaml:"path"`
}

type gitFile struct {
	Remote string `yaml:"remote"`
	Branch string `yaml:"branch"`
}

type s3File struct {
	Endpoint   string      `yaml:"endpoint"`
	Region     string      `yaml:"region"`
	Bucket     string      `yaml:"bucket"`
	Prefix     string      `yaml:"prefix"`
	AccessKey  *sourceFile `yaml:"access_key"`
	SecretKey  *sourceFile `yaml:"secret_key"`
	RetainDays int         `yaml:"retain_days"`
}

// sourceFile says where a credential is, as credentials.yaml does. The value itself never stands here.
type sourceFile struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
}

const maxConfig = 64 << 10

// Load reads the file that lists the places. When there is none, no place is configured. Paths in it are relative to it.
func Load(path string, s Setup) (Config, error) {
	text, err := readConfig(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, err
	}
	var f file
	if err := decode(text, &f); err != nil {
		return Config{}, located(path, err)
	}
	c, err := f.config(s, filepath.Dir(path))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// decode refuses what it does not know. The parser is not ours; what it cannot digest is a bad file and no reason to stop.
func decode(text []byte, f *file) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this is no YAML")
		}
	}()
	err = yaml.UnmarshalWithOptions(text, f, yaml.Strict())
	if errors.Is(err, io.EOF) { // nothing but comments
		return nil
	}
	return err
}

func located(path string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		return fmt.Errorf("%s:%d: %s", path, at.GetToken().Position.Line, at.GetMessage())
	}
	return fmt.Errorf("%s: %w", path, err)
}

func (f file) config(s Setup, dir string) (c Config, err error) {
	if f.Max != nil {
		if c.Limits.Age, err = atLeast(time.Second, "max_unanchored.age", f.Max.Age); err != nil {
			return c, err
		}
		if f.Max.Records != nil {
			if c.Limits.Records = *f.Max.Records; c.Limits.Records < 1 {
				return c, errors.New("max_unanchored.records is 1 or more")
			}
		}
	}
	if f.Need != nil {
		if c.Limits.Need = *f.Need; c.Limits.Need < 1 || c.Limits.Need > len(f.Sinks) {
			return c, fmt.Errorf("need is from 1 to %d, which is how many sinks there are", len(f.Sinks))
		}
	}
	names := map[string]bool{}
	for i, one := range f.Sinks {
		sink, err := one.sink(s, dir)
		if err != nil {
			return c, fmt.Errorf("sink %d (%s): %w", i+1, one.Name, err)
		}
		if names[one.Name] {
			return c, fmt.Errorf("sink %d: the name %s is used already", i+1, one.Name)
		}
		names[one.Name] = true
		c.Sinks = append(c.Sinks, sink)
	}
	return c, nil
}

var sinkName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

func (f sinkFile) sink(s Setup, dir string) (sink anchor.Sink, err error) {
	if !sinkName.MatchString(f.Name) {
		return sink, errors.New("name is one word of small letters and digits, with - _ . between them")
	}
	kinds := 0
	for kind, make := range map[string]func() (anchor.Place, error){
		"witness":   func() (anchor.Place, error) { return f.Witness.place(f.Name, s) },
		"file":      func() (anchor.Place, error) { return f.File.place(f.Name, dir, s) },
		"directory": func() (anchor.Place, error) { return f.Directory.place(f.Name, dir, s) },
		"git":       func() (anchor.Place, error) { return f.Git.place(f.Name, dir, s) },
		"s3":        func() (anchor.Place, error) { return f.S3.place(f.Name, dir, s) },
	} {
		if !f.has(kind) {
			continue
		}
		kinds++
		if sink.Place, err = make(); err != nil {
			return sink, fmt.Errorf("%s: %w", kind, err)
		}
		sink.Kind, sink.Every = kind, time.Minute
		if kind == "witness" { // it keeps nothing of what came before
			sink.Every = time.Second
		}
	}
	if kinds != 1 {
		return sink, errors.New("write exactly one of witness, file, directory, git and s3")
	}
	if f.Every != "" {
		sink.Every, err = atLeast(time.Second, "every", f.Every)
	}
	return sink, err
}

func (f sinkFile) has(kind string) bool {
	switch kind {
	case "witness":
		return f.Witness != nil
	case "file":
		return f.File != nil
	case "directory":
		return f.Directory != nil
	case "git":
		return f.Git != nil
	case "s3":
		return f.S3 != nil
	}
	return false
}

func (f *witnessFile) place(name string, s Setup) (anchor.Place, error) {
	key, err := journal.ParseKey(f.Key)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if !key.IsWitness() {
		return nil, errors.New("key: this is the key of a journal; write the one that deed witness keys prints for the witness")
	}
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("url is http:// or https://, a host and perhaps a path")
	}
	return NewWitness(name, f.URL, key, s.Keys), nil
}

func (f *appendedFile) place(name, dir string, s Setup) (anchor.Place, error) {
	if f.Path == "" {
		return nil, errors.New("path is missing")
	}
	return NewFile(name, absolute(dir, f.Path), s.Keys), nil
}

func (f *directoryFile) place(name, dir string, s Setup) (anchor.Place, error) {
	if f.Path == "" {
		return nil, errors.New("path is missing")
	}
	return NewDirectory(name, absolute(dir, f.Path), s.Keys), nil
}

var branchName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(/[A-Za-z0-9][A-Za-z0-9_-]*)*$`)

func (f *gitFile) place(name, dir string, s Setup) (anchor.Place, error) {
	remote, branch := f.Remote, f.Branch
	if remote == "" || strings.HasPrefix(remote, "-") {
		return nil, errors.New("remote is the address or the path of a repository")
	}
	if !strings.Contains(remote, ":") {
		remote = absolute(dir, remote)
	}
	if branch == "" {
		branch = "deed-checkpoints"
	}
	if !branchName.MatchString(branch) {
		return nil, errors.New("branch is a name of letters, digits, - and _, perhaps with /")
	}
	return NewGit(name, remote, branch, filepath.Join(s.Dir, "git-"+name), s.Keys), nil
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// longestLock is a mistake in the file that nobody could take back.
const longestLock = 36500

func (f *s3File) place(name, dir string, s Setup) (anchor.Place, error) {
	u, err := url.Parse(f.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("endpoint is https:// and a host")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return nil, errors.New("endpoint is https://; http:// is for loopback only")
	case !bucketName.MatchString(f.Bucket):
		return nil, errors.New("bucket is the name of a bucket with object lock")
	case f.RetainDays < 1 || f.RetainDays > longestLock:
		return nil, fmt.Errorf("retain_days is from 1 to %d: for so long nobody can remove a checkpoint", longestLock)
	}
	set := S3Settings{
		Endpoint: u, Region: f.Region, Bucket: f.Bucket, Prefix: f.Prefix, Retain: time.Duration(f.RetainDays) * 24 * time.Hour, Now: time.Now,
	}
	if set.Prefix != "" && !strings.HasSuffix(set.Prefix, "/") {
		set.Prefix += "/"
	}
	if set.AccessKey, err = f.AccessKey.source(dir); err != nil {
		return nil, fmt.Errorf("access_key: %w", err)
	}
	if set.SecretKey, err = f.SecretKey.source(dir); err != nil {
		return nil, fmt.Errorf("secret_key: %w", err)
	}
	return NewS3(name, set, s.Keys)
}

func (f *sourceFile) source(dir string) (vault.Source, error) {
	if f == nil || (f.Env == "") == (f.File == "") {
		return vault.Source{}, errors.New("write env: NAME or file: PATH, which is where the value is read in the moment of use")
	}
	if f.File != "" {
		return vault.Source{File: absolute(dir, f.File)}, nil
	}
	return vault.Source{Env: f.Env}, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// atLeast reads a duration; an empty one is not said.
func atLeast(least time.Duration, what, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least {
		return 0, fmt.Errorf("%s is a time such as 15m, at least %s", what, least)
	}
	return d, nil
}

func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxConfig)
	}
	return text, err
}
