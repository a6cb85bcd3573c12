package vault

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what stands in every place where a secret would have been.
const Redacted = "[secret]"

// Secret is a value that prints as [secret], whichever way it is printed. It holds a function and not the text, so that
// a printer that reads unexported fields finds an address only. The zero value is no secret at all.
type Secret struct{ reveal func() string }

// NewSecret wraps a value.
func NewSecret(value string) Secret { return Secret{func() string { return value }} }

// Reveal gives the value. Only executors call it, in the moment of sending, and the redactor.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// Format prints [secret] for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// String is [secret]. A panic with a Secret prints it.
func (s Secret) String() string { return Redacted }

// GoString is [secret].
func (s Secret) GoString() string { return Redacted }

// MarshalText gives [secret]; JSON and YAML encoders use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue keeps the value out of structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// buffer is a value that can be wiped. It holds a function for the same reason.
type buffer struct{ get func() []byte }

func newBuffer(b []byte) buffer {
	if len(b) == 0 {
		return buffer{}
	}
	return buffer{func() []byte { return b }}
}

func (b buffer) bytes() []byte {
	if b.get == nil {
		return nil
	}
	return b.get()
}

func (b buffer) wipe() { clear(b.bytes()) }

// Format prints [secret].
func (b buffer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }
