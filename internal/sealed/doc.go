// Package sealed encrypts protected content where it rests, with keys that stand apart from the database.
//
// A sealed value is
//
//	version(1) ‖ key identifier(8) ‖ nonce(24) ‖ XChaCha20-Poly1305(content)
//
// and is bound to its place: what kind of content it is, whose, and what the journal committed to. Moved to another place
// it does not open. Every value names its key, so a new key can be made at any time and the old ones go on opening what
// they sealed.
//
// The key of a value is HMAC-SHA-256, under a key of the file, of the lock of its place. Whoever destroys the lock makes the
// value unreadable, wherever copies of it are left, also for those who hold the key file.
//
// The package knows neither what it seals nor where that is stored, and it decides nothing about who may read: whoever
// holds the key file can. It protects a copy of the database that comes without the key file, such as a backup, an
// export or a disk that was thrown away.
package sealed
