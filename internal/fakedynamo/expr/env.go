package expr

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Env holds the placeholders of a request. The values must have passed
// [Check]; they may become part of an item and must not be changed afterwards.
type Env struct {
	Names  map[string]string
	Values map[string]types.AttributeValue
}

// Expression is a parsed expression of any kind.
type Expression interface {
	used() (Kind, *references)
	validate(Env) error
}

// Check reports what is wrong with a request whatever the item: a placeholder
// that is not defined or not used by any of the expressions, an operand of a
// type that its operator never takes, paths that overlap. Nil expressions are
// not allowed.
func (e Env) Check(exprs ...Expression) error {
	for _, x := range exprs {
		kind, refs := x.used()
		for _, name := range refs.names {
			if _, ok := e.Names[name]; !ok {
				return kind.invalid("An expression attribute name used in the document path is not defined; attribute name: %s", name)
			}
		}
		for _, value := range refs.values {
			if _, ok := e.Values[value]; !ok {
				return kind.invalid("An expression attribute value used in expression is not defined; attribute value: %s", value)
			}
		}
		if err := x.validate(e); err != nil {
			return err
		}
	}
	return e.checkUnused(exprs)
}

// checkUnused finds placeholders that no expression uses. All that are used
// are known to be defined, so the numbers tell whether there are others.
func (e Env) checkUnused(exprs []Expression) error {
	names := func(r *references) []string { return r.names }
	values := func(r *references) []string { return r.values }
	if distinct(exprs, names) != len(e.Names) {
		return unused("ExpressionAttributeNames", maps.Keys(e.Names), exprs, names)
	}
	if distinct(exprs, values) != len(e.Values) {
		return unused("ExpressionAttributeValues", maps.Keys(e.Values), exprs, values)
	}
	return nil
}

// distinct counts the placeholders that occur in any of the expressions.
func distinct(exprs []Expression, list func(*references) []string) int {
	n := 0
	for i, x := range exprs {
		_, refs := x.used()
		for _, p := range list(refs) {
			if !occurs(p, exprs[:i], list) {
				n++
			}
		}
	}
	return n
}

func occurs(placeholder string, exprs []Expression, list func(*references) []string) bool {
	for _, x := range exprs {
		if _, refs := x.used(); slices.Contains(list(refs), placeholder) {
			return true
		}
	}
	return false
}

func unused(member string, defined iter.Seq[string], exprs []Expression, list func(*references) []string) error {
	var left []string
	for _, p := range slices.Sorted(defined) {
		if !occurs(p, exprs, list) {
			left = append(left, p)
		}
	}
	return errorf("Value provided in %s unused in expressions: keys: {%s}", member, strings.Join(left, ", "))
}

// name gives the attribute name that an element stands for.
func (e Env) name(x element) string {
	if isPlaceholder(x.name) {
		return e.Names[x.name]
	}
	return x.name
}

// lookup finds the value at a path; nil when there is none.
func (e Env) lookup(item Item, p path) types.AttributeValue {
	v := item[e.name(p[0])]
	for _, x := range p[1:] {
		switch c := v.(type) {
		case *types.AttributeValueMemberM:
			if x.name == "" {
				return nil
			}
			v = c.Value[e.name(x)]
		case *types.AttributeValueMemberL:
			if x.name != "" || x.index >= len(c.Value) {
				return nil
			}
			v = c.Value[x.index]
		default:
			return nil
		}
	}
	return v
}

// resolved is a path with its placeholders replaced, for messages.
func (e Env) resolved(p path) path {
	out := slices.Clone(p)
	for i, x := range out {
		out[i].name = e.name(x)
	}
	return out
}

// checkPaths refuses paths of which one contains the other, or that need an
// attribute to be a map and a list at once.
func (e Env) checkPaths(kind Kind, paths []path) error {
	for i, a := range paths {
		for _, b := range paths[:i] {
			word := e.collision(a, b)
			if word == "" {
				continue
			}
			return kind.invalid("Two document paths %s with each other; must remove or rewrite one of these paths; path one: %s, path two: %s",
				word, e.resolved(b), e.resolved(a))
		}
	}
	return nil
}

// collision is "overlap", "conflict" or "" for two paths that can coexist.
func (e Env) collision(a, b path) string {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		switch {
		case (x.name == "") != (y.name == ""):
			return "conflict"
		case x.name == "" && x.index != y.index, x.name != "" && e.name(x) != e.name(y):
			return ""
		}
	}
	return "overlap"
}
