//go:build !unix

package sqlite_test

import "time"

func cpu() time.Duration { return 0 }
