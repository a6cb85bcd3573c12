package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deed.dev/deed/internal/action"
)

const (
	statusDescription = "Look at one of your actions: what is known of it, and its result if there is one. Give the action_id of an " +
		"earlier answer. This sends nothing and changes nothing, so it is always safe."
	waitDescription = "Wait until one of your actions is settled, and look at it then. Give the action_id of an earlier answer. It " +
		"answers as soon as nothing more will become of the action by itself, or when the time is over: after so many seconds, " +
		"or sooner if the gateway allows less. Call it again to go on waiting. This sends nothing and changes nothing."
	idSchema = `"action_id":{"type":"string","description":"The action_id of an earlier answer."},` +
		`"execution_id":{"type":"string","description":"Another name for action_id."}`
)

// helperSchemas are the inputs of deed's own tools. Which of the two names is used is left to the caller: a schema that asks
// for one of them is refused by some clients.
var helperSchemas = map[string]string{
	action.ToolStatus: `{"type":"object","properties":{` + idSchema + `},"additionalProperties":false}`,
	action.ToolWait: `{"type":"object","properties":{` + idSchema + `,"seconds":{"type":"number","minimum":0,` +
		`"description":"How long to wait at the most. Leave it out to wait as long as the gateway allows."}},"additionalProperties":false}`,
}

// addHelpers offers deed's own tools.
func (s *Server) addHelpers(server *mcp.Server) {
	no := false
	for name, description := range map[string]string{action.ToolStatus: statusDescription, action.ToolWait: waitDescription} {
		server.AddTool(&mcp.Tool{
			Name: name, Description: description, InputSchema: rawSchema([]byte(helperSchemas[name])),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
		}, s.look)
	}
}

// look handles a call of one of deed's own tools. It is answered like a call of the action itself, marked as an error until
// the effect is proved, so that no program which only asks whether it worked takes an open action for a success.
func (s *Server) look(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	e := s.exchangeOf(req)
	if e == nil {
		return nil, errors.New("the request lost its way inside deed; nothing was done")
	}
	call, err := decode(req, e)
	if err != nil {
		return refusal(err), nil
	}
	q, err := question(call.Tool, call.Arguments)
	if err != nil {
		return refusal(err), nil
	}
	ctx, stop := s.watch(ctx, e)
	defer stop()
	answer, err := s.ask(ctx, call, q)
	if err != nil {
		return refusal(err), nil
	}
	if answer.Action.State.Final() {
		e.answer(answer.Action.ID)
	}
	return encode(answer), nil
}

func (s *Server) ask(ctx context.Context, call action.Call, q asked) (action.Answer, error) {
	if call.Tool == action.ToolWait {
		return s.o.Gateway.Await(ctx, call, q.id, q.atMost)
	}
	return s.o.Gateway.Status(ctx, call, q.id)
}

// asked is what a call of one of deed's own tools wants to know.
type asked struct {
	id     action.ID
	atMost time.Duration
}

// question reads the arguments. Messages name members and never a value.
func question(tool string, args []byte) (asked, error) {
	members, err := membersOf(args)
	if err != nil {
		return asked{}, err
	}
	q := asked{atMost: math.MaxInt64}
	for name, raw := range members {
		switch {
		case name == "action_id" || name == "execution_id":
			var id string
			if json.Unmarshal(raw, &id) != nil || !action.ValidID(action.Prefix, id) {
				return asked{}, invalid("%s is not the id of an action: act_ and 26 characters, as they stand in an earlier answer", name)
			}
			if q.id != "" && q.id != action.ID(id) {
				return asked{}, invalid("action_id and execution_id are two names of one value, and these differ")
			}
			q.id = action.ID(id)
		case name == "seconds" && tool == action.ToolWait:
			if q.atMost, err = seconds(raw); err != nil {
				return asked{}, err
			}
		default:
			return asked{}, invalid("%s takes no other arguments than its schema names", tool)
		}
	}
	if q.id == "" {
		return asked{}, invalid("action_id is missing; take it from an earlier answer")
	}
	return q, nil
}

// seconds reads a number of seconds. More than an hour is an hour: the gateway allows less anyway.
func seconds(raw []byte) (time.Duration, error) {
	var n *float64
	if json.Unmarshal(raw, &n) != nil || n == nil || *n < 0 {
		return 0, invalid("seconds is not a number from 0 on")
	}
	return time.Duration(min(*n, time.Hour.Seconds()) * float64(time.Second)), nil
}

// membersOf splits a JSON object. A name that comes twice is refused: it could be read in two ways.
func membersOf(args []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, invalid("the arguments are not a JSON object")
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, invalid("the arguments are not a JSON object")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, invalid("the arguments are not a JSON object")
		}
		key, _ := name.(string)
		if _, twice := members[key]; twice {
			return nil, invalid("an argument is given twice")
		}
		members[key] = value
	}
	return members, nil
}

func invalid(format string, args ...any) *action.Error {
	return action.Errorf(action.CodeInvalidArguments, format+"; nothing was done", args...)
}
