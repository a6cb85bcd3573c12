package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/internal/store/storetest"
	"go.uber.org/goleak"
)

// childTask names what this test binary does when it is started as a child: a real second process.
const childTask = "DEED_STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch task := os.Getenv(childTask); task {
	case "":
		goleak.VerifyTestMain(m)
	case "open":
		os.Exit(childOpens(os.Args[len(os.Args)-1]))
	case "commit":
		os.Exit(childCommits(os.Args[len(os.Args)-1]))
	default:
		fmt.Fprintln(os.Stderr, "no such task:", task)
		os.Exit(2)
	}
}

func child(t *testing.T, task, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, dir)
	cmd.Env = append(os.Environ(), childTask+"="+task)
	cmd.Stderr = os.Stderr
	return cmd
}

// childOpens tries to open the store, says what came of it, and holds on until its input ends.
func childOpens(dir string) int {
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{Origin: "test.example/audit"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer s.Close()
	fmt.Println("open")
	bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// childCommits commits actions from 16 goroutines and prints the id of each once it is acknowledged, until it is killed.
func childCommits(dir string) int {
	s, err := sqlite.Open(context.Background(), dir, sqlite.Options{Origin: "test.example/audit"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	k := new(storetest.Kit)
	run := k.Run()
	if err := s.Commit(context.Background(), func(tx store.Tx) error { return tx.Append(k.Started(run)) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for {
				c := k.Claim(run)
				err := s.Commit(context.Background(), func(tx store.Tx) error {
					if _, err := tx.PutPayload(store.Arguments, string(c.Intent.ID), []byte("{}")); err != nil {
						return err
					}
					if err := tx.Append(k.Accepted(c)...); err != nil {
						return err
					}
					return k.Bring(tx, c.Action.ID, action.T3, action.T11)
				})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				fmt.Println(c.Action.ID) // one write system call, so that no half line is read
			}
		})
	}
	all.Wait()
	return 1
}
