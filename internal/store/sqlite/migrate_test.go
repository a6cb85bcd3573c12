package sqlite

import (
	"database/sql"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// Two changes of the schema that are written side by side may be released in either order: a database that has the later one
// gets the earlier one when it comes.
func TestAMigrationMayComeLate(t *testing.T) {
	late := fstest.MapFS{}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	must(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(migrations, name)
		must(t, err)
		late[filepath.Base(name)] = &fstest.MapFile{Data: text}
	}
	newest := late[filepath.Base(names[len(names)-1])]
	delete(late, filepath.Base(names[len(names)-1]))
	late["0042_newest.sql"] = newest // and a gap before it
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "deed.db"))
	must(t, err)
	defer db.Close()
	must(t, migrateWith(t.Context(), db, late))
	late["0041_came_late.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\ncreate table came_late (n integer) strict;\n")}
	must(t, migrateWith(t.Context(), db, late))
	if _, err := db.Exec(`insert into came_late values (1)`); err != nil {
		t.Error(err)
	}
	must(t, migrateWith(t.Context(), db, late))
}
