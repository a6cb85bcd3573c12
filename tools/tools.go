//go:build tools

// Package tools pins the developer tools.
package tools

import _ "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"
