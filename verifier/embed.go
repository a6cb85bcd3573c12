// Package verifier holds the JavaScript verifier and the page around it as text, for whoever hands them out. It refuses to
// know what they do: in Go that is the package journal.
package verifier

import _ "embed"

// Program is deed-verify.mjs.
//
//go:embed deed-verify.mjs
var Program string

// Page is the template of a page that checks the receipt in it; internal/receiptpage fills it in.
//
//go:embed receipt.html.tmpl
var Page string

// PageScript shows in that page what Program says. It stands behind Program in one script.
//
//go:embed receipt-page.mjs
var PageScript string

// PageStyle is how that page looks.
//
//go:embed receipt-page.css
var PageStyle string
