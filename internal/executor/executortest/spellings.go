package executortest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
)

// Spellings are the forms in which a search for a secret has to look for it.
func Spellings(secret string) map[string]string {
	quoted, _ := json.Marshal(secret)
	return map[string]string{
		"raw": secret, "query": url.QueryEscape(secret), "path": url.PathEscape(secret), "json": string(quoted[1 : len(quoted)-1]),
		"hex": hex.EncodeToString([]byte(secret)), "base64": base64.RawStdEncoding.EncodeToString([]byte(secret)),
		"base64url": base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
}
