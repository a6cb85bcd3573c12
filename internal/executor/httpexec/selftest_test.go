package httpexec

import "testing"

// Case 033: the self-test passes, and it fails for an executor that does not get through.
func TestSelfTest(t *testing.T) {
	executor := newExecutor(t, Options{})
	if err := executor.SelfTest(t.Context()); err != nil {
		t.Error(err)
	}
	executor.Close()
	if err := executor.SelfTest(t.Context()); err == nil {
		t.Error("a closed executor passed")
	}
}
