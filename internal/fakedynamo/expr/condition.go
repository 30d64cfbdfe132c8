package expr

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Condition is a parsed condition, filter or key condition.
type Condition struct {
	kind Kind
	root *condition
	refs references
}

func (c *Condition) used() (Kind, *references) { return c.kind, &c.refs }

// Match evaluates the condition on an item; a missing item is an empty one.
// The request must have passed [Env.Check].
func (c *Condition) Match(env Env, item Item) bool {
	return c.root.match(env, item)
}

// Mentions gives the first of the named top-level attributes that the
// condition refers to, or "".
func (c *Condition) Mentions(env Env, names ...string) string {
	return c.root.mentions(env, names)
}

func (c *condition) mentions(env Env, names []string) string {
	for _, s := range c.subs {
		if n := s.mentions(env, names); n != "" {
			return n
		}
	}
	return mentionedIn(c.args, env, names)
}

func mentionedIn(args []*operand, env Env, names []string) string {
	for _, o := range args {
		if o.path != nil && slices.Contains(names, env.name(o.path[0])) {
			return env.name(o.path[0])
		}
		if n := mentionedIn(o.args, env, names); n != "" {
			return n
		}
	}
	return ""
}

func (c *condition) match(env Env, item Item) bool {
	switch c.op {
	case "AND":
		for _, s := range c.subs {
			if !s.match(env, item) {
				return false
			}
		}
		return true
	case "OR":
		for _, s := range c.subs {
			if s.match(env, item) {
				return true
			}
		}
		return false
	case "NOT":
		return !c.subs[0].match(env, item)
	}
	first := c.args[0].eval(env, item)
	switch c.op {
	case "attribute_exists":
		return first != nil
	case "attribute_not_exists":
		return first == nil
	case "IN":
		for _, o := range c.args[1:] {
			if relate("=", first, o.eval(env, item)) {
				return true
			}
		}
		return false
	case "BETWEEN":
		return relate(">=", first, c.args[1].eval(env, item)) && relate("<=", first, c.args[2].eval(env, item))
	}
	second := c.args[1].eval(env, item)
	switch c.op {
	case "begins_with":
		return beginsWith(first, second)
	case "contains":
		return contains(first, second)
	case "attribute_type":
		t, ok := second.(*types.AttributeValueMemberS)
		return ok && first != nil && t.Value == TypeOf(first)
	}
	return relate(c.op, first, second)
}

// relate compares two values. With a missing one, or with values of different
// types, only <> holds.
func relate(op string, a, b types.AttributeValue) bool {
	if op == "=" || op == "<>" {
		return (a != nil && b != nil && Equal(a, b)) == (op == "=")
	}
	order, ok := compare(a, b)
	if !ok {
		return false
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func beginsWith(v, prefix types.AttributeValue) bool {
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		p, ok := prefix.(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(x.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := prefix.(*types.AttributeValueMemberB)
		return ok && bytes.HasPrefix(x.Value, p.Value)
	}
	return false
}

// contains looks for a substring, an element of a set or an element of a list.
func contains(v, part types.AttributeValue) bool {
	switch x := v.(type) {
	case *types.AttributeValueMemberL:
		return part != nil && slices.ContainsFunc(x.Value, func(e types.AttributeValue) bool { return Equal(e, part) })
	case *types.AttributeValueMemberS:
		p, ok := part.(*types.AttributeValueMemberS)
		return ok && strings.Contains(x.Value, p.Value)
	case *types.AttributeValueMemberB:
		p, ok := part.(*types.AttributeValueMemberB)
		return ok && bytes.Contains(x.Value, p.Value)
	case *types.AttributeValueMemberSS:
		p, ok := part.(*types.AttributeValueMemberS)
		return ok && slices.Contains(x.Value, p.Value)
	case *types.AttributeValueMemberNS:
		p, ok := part.(*types.AttributeValueMemberN)
		return ok && slices.Contains(x.Value, p.Value)
	case *types.AttributeValueMemberBS:
		p, ok := part.(*types.AttributeValueMemberB)
		return ok && slices.ContainsFunc(x.Value, func(e []byte) bool { return bytes.Equal(e, p.Value) })
	}
	return false
}

// eval evaluates an operand of a condition; nil when it has no value.
func (o *operand) eval(env Env, item Item) types.AttributeValue {
	switch {
	case o.path != nil:
		return env.lookup(item, o.path)
	case o.value != "":
		return env.Values[o.value]
	}
	n, ok := sizeOf(o.args[0].eval(env, item))
	if !ok {
		return nil
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

// sizeOf is the size function: UTF-16 units of a string, bytes, or elements.
func sizeOf(v types.AttributeValue) (int, bool) {
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		return len(utf16.Encode([]rune(x.Value))), true
	case *types.AttributeValueMemberB:
		return len(x.Value), true
	case *types.AttributeValueMemberL:
		return len(x.Value), true
	case *types.AttributeValueMemberM:
		return len(x.Value), true
	}
	s, ok := setOf(v)
	return len(s), ok
}
