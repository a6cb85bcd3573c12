package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// strictly decodes JSON and refuses members that are not known. What it says quotes names at most.
func strictly(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return errors.New("the member " + wrong.Field + " is of the wrong type")
	case strings.Contains(err.Error(), "unknown field"):
		return errors.New("it has a member that is not known; a decision has decision, why, evidence, seen and result, and a reading has why")
	default:
		return errors.New("it is not one JSON value")
	}
}
