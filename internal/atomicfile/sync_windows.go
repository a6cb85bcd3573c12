package atomicfile

// syncDir does nothing: this system has no way to sync a directory, and a rename is durable with its file.
func syncDir(string) error { return nil }
