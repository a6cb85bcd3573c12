package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// toolArguments makes the JSON arguments of a call from --arg name=value and --args. A value is text where the tool's
// input says string, and JSON elsewhere; digits stay as they were typed.
func toolArguments(schema []byte, pairs []string, whole string, in io.Reader) ([]byte, error) {
	if whole != "" {
		if len(pairs) > 0 {
			return nil, &exitError{exitUsage, fmt.Errorf("give either --args or --arg, not both")}
		}
		return wholeArguments(whole, in)
	}
	var input struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &input) // without a schema every value is JSON or text
	args := map[string]json.RawMessage{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, &exitError{exitUsage, fmt.Errorf("--arg takes name=value, as in --arg amount=25000")}
		}
		if _, twice := args[name]; twice {
			return nil, &exitError{exitUsage, fmt.Errorf("--arg %s is given twice", name)}
		}
		args[name] = argument(value, input.Properties[name].Type == "string")
	}
	return json.Marshal(args)
}

func argument(value string, text bool) json.RawMessage {
	if !text && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return quoted
}

// wholeArguments reads --args: JSON, @FILE, or - for standard input.
func wholeArguments(whole string, in io.Reader) ([]byte, error) {
	const most = 2 << 20
	switch {
	case whole == "-":
		return io.ReadAll(io.LimitReader(in, most))
	case strings.HasPrefix(whole, "@"):
		f, err := os.Open(whole[1:])
		if err != nil {
			return nil, &exitError{exitUsage, err}
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, most))
	default:
		return []byte(whole), nil
	}
}
