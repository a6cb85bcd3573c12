package storetest

import (
	"reflect"

	"deed.dev/deed/internal/action"
)

func same(a, b action.Action) bool { return reflect.DeepEqual(a, b) }

func ids(actions []action.Action) []action.ID {
	list := []action.ID{}
	for _, a := range actions {
		list = append(list, a.ID)
	}
	return list
}
