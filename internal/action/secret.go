package action

// SecretMark begins the reference that stands in the place of a secret argument, from the entry of a call to the moment of
// sending. No argument of a call may hold it.
const SecretMark = "deed-secret:"

// SecretReference is what stands in the place of the secret argument of this name.
func SecretReference(name string) string { return SecretMark + name }

// SealedArgument is a secret argument as it is recorded with its operation: the name whose reference stands in the body,
// and the value under a key that is not in the record.
type SealedArgument struct {
	Name   string
	Sealed []byte
}
