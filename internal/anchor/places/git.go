package places

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"deed.dev/deed/internal/anchor"
	"deed.dev/deed/journal"
)

// Git keeps a commit per checkpoint on one branch of a repository, by the git program, which knows how to reach repositories
// and to prove who asks. The branch only grows: nothing is ever forced.
type Git struct {
	name   string
	remote string
	branch string
	dir    string // a bare repository of our own, in which commits are made
	keys   []journal.Key
}

// NewGit is a place in a branch of the repository at remote: an address or a path, as git takes it. dir is for its own use.
func NewGit(name, remote, branch, dir string, keys []journal.Key) *Git {
	return &Git{name, remote, branch, dir, keys}
}

// checkpointFile is the one file in every commit.
const checkpointFile = "checkpoint"

// Name tells it apart from other places.
func (g *Git) Name() string { return g.name }

func (g *Git) ref() string { return "refs/heads/" + g.branch }

// Check compares the journal with the newest commit of the branch.
func (g *Git) Check(ctx context.Context, head anchor.Head) error {
	signed, err := g.newest(ctx)
	if err != nil || signed == nil {
		return err
	}
	return holds(ctx, g.name, g.keys, signed, head)
}

// newest fetches the branch and reads its checkpoint; nil when the branch is not there.
func (g *Git) newest(ctx context.Context) ([]byte, error) {
	if err := g.prepare(ctx); err != nil {
		return nil, err
	}
	there, err := g.git(ctx, nil, "ls-remote", "--heads", "--", g.remote, g.ref())
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(there)) == 0 {
		return nil, nil
	}
	if _, err := g.git(ctx, nil, "fetch", "--quiet", "--no-tags", "--", g.remote, "+"+g.ref()+":"+g.ref()); err != nil {
		return nil, err
	}
	return g.git(ctx, nil, "cat-file", "blob", g.ref()+":"+checkpointFile)
}

// Keep commits the checkpoint on the branch and pushes it.
func (g *Git) Keep(ctx context.Context, head anchor.Head) ([]byte, error) {
	err := g.push(ctx, head)
	var refused *gitError
	if !errors.As(err, &refused) {
		return nil, err
	}
	// Perhaps the branch has moved. What is there now must be continued as well.
	there, found := g.newest(ctx)
	if found != nil || there == nil {
		return nil, err
	}
	if conflict := holds(ctx, g.name, g.keys, there, head); conflict != nil {
		return nil, conflict
	}
	return nil, g.push(ctx, head)
}

func (g *Git) push(ctx context.Context, head anchor.Head) error {
	if err := g.prepare(ctx); err != nil {
		return err
	}
	blob, err := g.word(ctx, head.Signed, "hash-object", "-w", "--stdin")
	if err != nil {
		return err
	}
	tree, err := g.word(ctx, fmt.Appendf(nil, "100644 blob %s\t%s\n", blob, checkpointFile), "mktree")
	if err != nil {
		return err
	}
	args := []string{"commit-tree", tree, "-m", fmt.Sprintf("%s: %d records", head.Origin, head.Size)}
	if parent, err := g.word(ctx, nil, "rev-parse", "--verify", "--quiet", g.ref()); err == nil {
		if last, err := g.word(ctx, nil, "rev-parse", "--verify", g.ref()+"^{tree}"); err == nil && last == tree {
			return nil // it is there already
		}
		args = append(args, "-p", parent)
	}
	commit, err := g.word(ctx, nil, args...)
	if err != nil {
		return err
	}
	if _, err := g.git(ctx, nil, "push", "--quiet", "--", g.remote, commit+":"+g.ref()); err != nil {
		return err
	}
	_, err = g.git(ctx, nil, "update-ref", g.ref(), commit)
	return err
}

// prepare makes the repository in which commits are made.
func (g *Git) prepare(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(g.dir, "HEAD")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := g.git(ctx, nil, "init", "--quiet", "--bare")
	return err
}

// word runs git and returns the one word that it prints.
func (g *Git) word(ctx context.Context, in []byte, args ...string) (string, error) {
	out, err := g.git(ctx, in, args...)
	return strings.TrimSpace(string(out)), err
}

// gitError is what git said when it failed.
type gitError struct {
	command string
	said    string
	err     error
}

func (e *gitError) Error() string { return fmt.Sprintf("git %s: %v: %s", e.command, e.err, e.said) }

func (e *gitError) Unwrap() error { return e.err }

// git runs one command in our own repository. It asks nobody for a password, runs no hook of ours and signs nothing; how the
// remote is reached is the user's own setting.
func (g *Git) git(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	fixed := []string{"--git-dir=" + g.dir, "-c", "core.hooksPath=" + os.DevNull, "-c", "commit.gpgSign=false", "-c", "protocol.ext.allow=never", "-c", "gc.auto=1000"}
	cmd := exec.CommandContext(ctx, "git", append(fixed, args...)...)
	cmd.WaitDelay = 2 * time.Second
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "GIT_SSH") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=deed", "GIT_AUTHOR_EMAIL=deed@localhost", "GIT_COMMITTER_NAME=deed", "GIT_COMMITTER_EMAIL=deed@localhost")
	cmd.Stdin = bytes.NewReader(in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, &gitError{args[0], firstLine(said.Bytes()), err}
	}
	return out.Bytes(), nil
}
