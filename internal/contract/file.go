package contract

import (
	"bytes"
	"encoding/json"

	"deed.dev/deed/internal/canonical"
)

// file is one contract as it stands in the text. Its fields are those of contract.schema.json.
type file struct {
	Tool         string            `json:"tool"`
	Title        string            `json:"title"`
	Description  string            `json:"description"`
	Input        value             `json:"input"`
	HTTP         httpPart          `json:"http"`
	Resource     string            `json:"resource"`
	OnLost       lostPart          `json:"on_lost_response"`
	Lookup       *lookupPart       `json:"lookup"`
	Poll         *pollPart         `json:"poll"`
	Undo         *undoPart         `json:"undo"`
	Metadata     metadataPart      `json:"metadata"`
	Volatile     []string          `json:"volatile"`
	Normalize    map[string]string `json:"normalize"`
	Defaults     value             `json:"defaults"`
	DoneWhen     string            `json:"done_when"`
	NoEffectWhen string            `json:"no_effect_when"`
	RetryWhen    string            `json:"retry_when"`
	Impact       string            `json:"impact"`
	Attempts     int               `json:"attempts"`
	Timeout      string            `json:"timeout"`
	KeepResult   string            `json:"keep_result"`
	EachUse      bool              `json:"each_use"`
	Approval     *approvalPart     `json:"approval"`
	Redact       []string          `json:"redact"`
}

type approvalPart struct {
	Approvers    int    `json:"approvers"`
	Expires      string `json:"expires"`
	NotRequester bool   `json:"not_requester"`
}

type httpPart struct {
	Method        string            `json:"method"`
	URL           string            `json:"url"`
	Credential    string            `json:"credential"`
	Headers       map[string]string `json:"headers"`
	JSON          value             `json:"json"`
	Form          map[string]value  `json:"form"`
	Private       []string          `json:"private"`
	ResponseLimit string            `json:"response_limit"`
}

type lostPart struct {
	Class       string   `json:"class"`
	Key         *keyPart `json:"key"`
	AttachFor   string   `json:"attach_for"`
	Scope       string   `json:"scope"`
	Match       string   `json:"match"`
	Evidence    string   `json:"evidence"`
	Margin      string   `json:"margin"`
	ReviewAfter string   `json:"review_after"`
}

type keyPart struct {
	Header  string `json:"header"`
	JSON    string `json:"json"`
	Form    string `json:"form"`
	Repeat  string `json:"repeat"`
	KeptFor string `json:"kept_for"`
}

type lookupPart struct {
	Request       questionPart `json:"request"`
	Found         string       `json:"found"`
	Absent        string       `json:"absent"`
	Result        string       `json:"result"`
	Authoritative bool         `json:"authoritative"`
	Settle        string       `json:"settle"`
	Marker        string       `json:"marker"`
}

type pollPart struct {
	AcceptedWhen string       `json:"accepted_when"`
	Job          string       `json:"job"`
	Request      questionPart `json:"request"`
	DoneWhen     string       `json:"done_when"`
	NoEffectWhen string       `json:"no_effect_when"`
	Result       string       `json:"result"`
	Every        string       `json:"every"`
	GiveUpAfter  string       `json:"give_up_after"`
}

type undoPart struct {
	Tool      string `json:"tool"`
	Arguments value  `json:"arguments"`
}

type questionPart struct {
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Credential string            `json:"credential"`
	Headers    map[string]string `json:"headers"`
}

type metadataPart struct {
	JSON oneOrMore `json:"json"`
	Form oneOrMore `json:"form"`
}

// given reports whether idem_key goes to the target.
func (m metadataPart) given() bool { return len(m.JSON)+len(m.Form) > 0 }

// value is any JSON value, kept as a canonical tree.
type value struct {
	tree  any
	given bool
}

func (v *value) UnmarshalJSON(data []byte) (err error) {
	v.given = true
	v.tree, err = canonical.Parse(data)
	return err
}

// oneOrMore is a string or a list of strings.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*o = make([]string, 1)
		return json.Unmarshal(data, &(*o)[0])
	}
	return json.Unmarshal(data, (*[]string)(o))
}

// decodeFile fills the structure from a document whose shape is checked.
func decodeFile(root any) (file, error) {
	var c file
	data, err := canonical.Marshal(root)
	if err != nil {
		return c, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return c, d.Decode(&c)
}
