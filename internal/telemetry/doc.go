// Package telemetry turns what is unresolved into metrics, so that somebody can be alarmed by it: how much waits, for how
// long, and whether the credentials are locked. The instruments are OpenTelemetry's, and are read as Prometheus text.
//
// It is a convenience and never evidence. It reads figures when it is asked, stands in no call's way, and knows no
// action, no argument and no agent: its labels are a closed set of words.
package telemetry
