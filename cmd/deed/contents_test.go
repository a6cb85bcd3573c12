package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"

	"deed.dev/deed/internal/sealed"
	"deed.dev/deed/internal/store/sqlite"
)

// export is the journal as an auditor gets it.
func (d *daemon) export() []byte {
	d.t.Helper()
	r, err := sqlite.OpenReader(d.t.Context(), d.data())
	d.must(err)
	defer r.Close()
	var b bytes.Buffer
	d.must(r.Records(d.t.Context(), 0, func(_ int64, hash [32]byte, body []byte) error {
		_, err := fmt.Fprintf(&b, "%x %s\n", hash, body)
		return err
	}))
	return b.Bytes()
}

// contents opens all that is sealed.
func (d *daemon) contents() []byte {
	d.t.Helper()
	keys, err := sealed.Read(filepath.Join(d.data(), sqlite.KeysName))
	d.must(err)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.data(), "deed.db")+"?mode=ro")
	d.must(err)
	defer db.Close()
	rows, err := db.Query(`select kind, owner, commitment, lock, sealed from payloads join content_locks using (slot)`)
	d.must(err)
	defer rows.Close()
	var all []byte
	for rows.Next() {
		var p sealed.Place
		var value []byte
		d.must(rows.Scan(&p.Kind, &p.Owner, &p.Commitment, &p.Lock, &value))
		content, err := keys.Open(p, value)
		d.must(err)
		all = append(all, content...)
	}
	d.must(rows.Err())
	return all
}

// locks are those of all content that is there.
func (d *daemon) locks() (all [][]byte) {
	d.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(d.data(), "deed.db")+"?mode=ro")
	d.must(err)
	defer db.Close()
	rows, err := db.Query(`select distinct lock from payloads join content_locks using (slot)`)
	d.must(err)
	defer rows.Close()
	for rows.Next() {
		var lock []byte
		d.must(rows.Scan(&lock))
		all = append(all, lock)
	}
	d.must(rows.Err())
	return all
}
