package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"deed.dev/deed/internal/store"
	"deed.dev/deed/internal/store/sqlite"
	"deed.dev/deed/journal"
)

// export FILE writes the journal of $DATA as its byte-exact export.
func scriptExport(ts *testscript.TestScript, _ bool, args []string) {
	r := scriptReader(ts)
	defer r.Close()
	var lines []byte
	ts.Check(r.Records(context.Background(), 0, func(_ int64, hash [32]byte, body []byte) error {
		lines = journal.AppendLine(lines, journal.Record{Hash: hash, Body: body})
		return nil
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), lines, 0o600))
}

// actionids sets $ACT1, $ACT2 and so on to the actions of $DATA, oldest first.
func scriptActionIDs(ts *testscript.TestScript, _ bool, _ []string) {
	r := scriptReader(ts)
	defer r.Close()
	all, err := r.Actions(context.Background(), store.Query{})
	ts.Check(err)
	for i, act := range all {
		ts.Setenv(fmt.Sprintf("ACT%d", len(all)-i), string(act.ID))
	}
}

func scriptReader(ts *testscript.TestScript) *sqlite.Reader {
	r, err := sqlite.OpenReader(context.Background(), ts.Getenv("DATA"))
	ts.Check(err)
	return r
}
