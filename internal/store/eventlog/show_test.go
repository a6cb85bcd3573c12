package eventlog_test

import (
	"encoding/json"

	"deed.dev/deed/internal/action"
)

func show(ev action.Event) string {
	b, err := json.Marshal(ev)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
