// Package contract reads tool contracts and resolves a call of a tool into one operation.
//
//	file ──Parse──▶ Contract ──Resolve(arguments)──▶ Resolved ──Operation(id)──▶ what is sent
//	                    └──────Judge(answer)───────▶ what the answer proves
//
// A contract says what a tool takes, what it sends, and what may be done after the response was lost. A contract that
// leaves the last out does not load. The format is described in docs/contracts.md and docs/contract.schema.json.
//
// The package is pure once contracts are loaded: no clock, no network, no environment. It refuses to know who calls, what
// a credential holds, and whether anything was sent.
package contract
