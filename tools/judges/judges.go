//go:build judges

// Package judges pins the programs that judge deed: a witness and an object storage that nobody here wrote.
package judges

import (
	_ "filippo.io/torchwood/cmd/litewitness"
	_ "filippo.io/torchwood/cmd/witnessctl"
	_ "github.com/versity/versitygw/cmd/versitygw"
)
