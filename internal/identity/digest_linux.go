package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"sync"
)

const (
	maxExecutable = 256 << 20 // a larger file gets no digest: it is evidence, and not worth a minute of reading
	maxDigests    = 256       // files that are remembered
)

// digestCache remembers the SHA-256 of executables. Each is read once, however many callers ask at the same moment.
type digestCache struct {
	mu    sync.Mutex
	known map[file]func() string
}

var digests = digestCache{known: map[file]func() string{}}

// of gives the digest of the file that path leads to now, "" when it cannot be read. version is what it was found to be.
func (c *digestCache) of(path string, version file) string {
	c.mu.Lock()
	read, ok := c.known[version]
	if !ok {
		if len(c.known) >= maxDigests {
			clear(c.known)
		}
		read = sync.OnceValue(func() string { return digestOf(path, version) })
		c.known[version] = read
	}
	c.mu.Unlock()

	digest := read()
	if digest == "" { // perhaps the process was gone by then; the next one may be luckier
		c.mu.Lock()
		delete(c.known, version)
		c.mu.Unlock()
	}
	return digest
}

// reading is held while an executable is read: callers that change their program again and again wait for each other, and not
// everybody else for them.
var reading sync.Mutex

func digestOf(path string, version file) string {
	if version.size > maxExecutable {
		return ""
	}
	reading.Lock()
	defer reading.Unlock()
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxExecutable+1))
	if err != nil || n != version.size {
		return ""
	}
	if now, err := statFile(path); err != nil || now != version { // it changed, or the process runs another one
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
