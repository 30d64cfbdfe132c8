package expr

import (
	"slices"
	"strconv"
	"strings"
)

// element is one step of a document path: a name (or #placeholder) or an index.
type element struct {
	name  string
	index int // used when name is empty
}

// path is a document path such as a.#b[0], as written.
type path []element

// String renders a path as the service does in its messages.
func (p path) String() string {
	parts := make([]string, len(p))
	for i, e := range p {
		parts[i] = e.name
		if e.name == "" {
			parts[i] = "[" + strconv.Itoa(e.index) + "]"
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// operand is a path, a :value, a function call or a sum. Exactly one of path,
// value and op is set.
type operand struct {
	path  path
	value string
	op    string // "size", "if_not_exists", "list_append", "+" or "-"
	args  []*operand
}

// condition is a node of a condition: a connective over conditions or a
// comparison or function over operands.
type condition struct {
	op   string // "AND", "OR", "NOT", a comparator, "BETWEEN", "IN" or a function name
	subs []*condition
	args []*operand
	// grouped is set when the node was written in parentheses.
	grouped bool
}

// action is one action of an update.
type action struct {
	section string // "SET", "REMOVE", "ADD" or "DELETE"
	path    path
	operand *operand // nil for REMOVE
}

// references collects the placeholders that an expression uses.
type references struct {
	names, values []string
}

func (r *references) addName(name string) {
	if !slices.Contains(r.names, name) {
		r.names = append(r.names, name)
	}
}

func (r *references) addValue(value string) {
	if !slices.Contains(r.values, value) {
		r.values = append(r.values, value)
	}
}
