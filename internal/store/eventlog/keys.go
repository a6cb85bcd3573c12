package eventlog

import (
	"fmt"
	"time"

	"deed.dev/deed/journal"
	"github.com/go-json-experiment/json"
)

// Events of the journal itself, which are about no action.
const (
	JournalOpened = "journal.opened" // record 0
	JournalKey    = "journal.key"    // names the key that signs checkpoints from here on
)

// LogKeyMember is the member in which both name the public key of the log.
const LogKeyMember = "log_key"

// KeyBody gives the members of an event that names the log's key from now on, all but prev, seq and v. replaces is the key
// that it takes over from, "" when the journal had none.
func KeyBody(at time.Time, key, replaces string) map[string]any {
	m := members{"event": JournalKey, "time": journal.FormatTime(at), LogKeyMember: key}
	put(m, "replaces", replaces)
	return m
}

// LogKey gives the public key that a body names as the log's own, "" when it names none. body has passed the profile.
func LogKey(body []byte) (string, error) {
	var named struct {
		Event string `json:"event"`
		Key   string `json:"log_key"`
	}
	if err := json.Unmarshal(body, &named); err != nil {
		return "", fmt.Errorf("read a journal body: %w", err)
	}
	if named.Event != JournalOpened && named.Event != JournalKey {
		return "", nil
	}
	return named.Key, nil
}
