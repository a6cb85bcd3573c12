package operator

// The rules that are asked alone.
var (
	MayEnter = mayEnter
	Choices  = choices
)
