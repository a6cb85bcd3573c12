package contract

import (
	"maps"

	"deed.dev/deed/internal/action"
	"deed.dev/deed/internal/canonical"
)

// repeatDescription tells a model when to use repeat_of, and above all when not to.
const repeatDescription = "Leave this out. Calling again after an error, a timeout or a lost answer is safe without it: the " +
	"same call is recognised and done once. Only to do the very same thing a second time on purpose, give the repeat_of " +
	"token that stands in the completed result of the first."

// InputSchema is the JSON Schema of the arguments as agents see it: closed where the contract leaves it open by silence,
// and for tools with effects with one optional property more, repeat_of.
func (c *Contract) InputSchema() []byte {
	root, _ := c.args.root.(map[string]any)
	root = maps.Clone(root)
	if c.HasEffects {
		properties, _ := root["properties"].(map[string]any)
		properties = maps.Clone(properties)
		if properties == nil {
			properties = map[string]any{}
		}
		properties[repeatOf] = map[string]any{"type": "string", "description": repeatDescription}
		root["properties"] = properties
	}
	data, err := canonical.Marshal(root)
	if err != nil {
		return nil // the schema was canonical when it was loaded
	}
	return data
}

// Annotations are the hints that MCP gives about a tool.
type Annotations struct {
	Title       string
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	OpenWorld   bool
}

// Annotations derives the hints from the class. A tool with effects is never called idempotent: deed does each action
// once, but an equal call after a delivered answer is a new action, whatever the target does with keys.
func (c *Contract) Annotations() Annotations {
	reads := c.Class == action.ReadOnly
	return Annotations{Title: c.Title, ReadOnly: reads, Destructive: !reads, Idempotent: reads, OpenWorld: true}
}
