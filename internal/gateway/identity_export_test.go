package gateway

// IdentityNewID lets a test make many identifiers.
var IdentityNewID = newID
