package telemetry_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deed.dev/deed/internal/telemetry"
)

// UN-26: age, count and kind of what is unresolved can be alarmed on. The whole page is compared, so that nothing
// else is told, and no name changes by itself.
func TestThePage(t *testing.T) {
	t.Parallel()
	h, err := telemetry.New(func(context.Context) (telemetry.Figures, error) {
		return telemetry.Figures{
			Reconciling: 3, ReviewRequired: 2, Delegated: 5, Overdue: 1, OldestUnknown: 90*time.Minute + time.Millisecond, VaultLocked: true, Records: 41,
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `# HELP deed_actions_delegated Actions that their target has accepted and finishes later.
# TYPE deed_actions_delegated gauge
deed_actions_delegated 5
# HELP deed_actions_overdue Unknown actions for which deed has looked for evidence longer than their contract says.
# TYPE deed_actions_overdue gauge
deed_actions_overdue 1
# HELP deed_actions_unknown Actions whose effect may have happened: deed looks for evidence, or a person has to.
# TYPE deed_actions_unknown gauge
deed_actions_unknown{recovery="reconciling"} 3
deed_actions_unknown{recovery="review_required"} 2
# HELP deed_journal_records Records in the journal.
# TYPE deed_journal_records gauge
deed_journal_records 41
# HELP deed_unknown_oldest_age_seconds How long the oldest unknown action has been unknown; 0 when there is none.
# TYPE deed_unknown_oldest_age_seconds gauge
deed_unknown_oldest_age_seconds 5400
# HELP deed_vault_locked 1 while the credentials are locked, so that nothing is sent.
# TYPE deed_vault_locked gauge
deed_vault_locked 1
`
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("answered %d with\n%s", w.Code, w.Body)
		}
	}
}

// A record that cannot be read never looks like an empty backlog, or like the one of a moment ago.
func TestWhatCannotBeReadIsNotShown(t *testing.T) {
	t.Parallel()
	var broken error
	h, err := telemetry.New(func(context.Context) (telemetry.Figures, error) { return telemetry.Figures{Reconciling: 3}, broken })
	if err != nil {
		t.Fatal(err)
	}
	for _, broken = range []error{nil, errors.New("disk gone"), nil} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if ok := broken == nil; (w.Code == 200) != ok || strings.Contains(w.Body.String(), "deed_actions_unknown") != ok {
			t.Errorf("with %v it answers %d\n%s", broken, w.Code, w.Body)
		}
	}
}
