package expr

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	orderedTypes   = []string{"S", "N", "B"}
	beginTypes     = []string{"S", "B"}
	sizedTypes     = []string{"S", "B", "SS", "NS", "BS", "L", "M"}
	attributeTypes = []string{"B", "NULL", "SS", "BOOL", "L", "BS", "N", "NS", "S", "M"}
)

// validate checks the operands that are values: their types are known before
// any item is.
func (c *Condition) validate(env Env) error {
	return c.root.validate(c.kind, env)
}

func (c *condition) validate(kind Kind, env Env) error {
	for _, s := range c.subs {
		if err := s.validate(kind, env); err != nil {
			return err
		}
	}
	for _, o := range c.args {
		if o.op != "" {
			if err := checkTypes(kind, env, o.op, o.args, sizedTypes); err != nil {
				return err
			}
		}
	}
	switch c.op {
	case "<", "<=", ">", ">=":
		return checkTypes(kind, env, c.op, c.args, orderedTypes)
	case "BETWEEN":
		if err := checkTypes(kind, env, c.op, c.args, orderedTypes); err != nil {
			return err
		}
		return checkBounds(kind, env.Values[c.args[1].value], env.Values[c.args[2].value])
	case "begins_with":
		return checkTypes(kind, env, c.op, c.args, beginTypes)
	case "attribute_type":
		return checkTypeName(kind, env.Values[c.args[1].value])
	}
	return nil
}

// checkTypes verifies that operands given as values have one of the types.
func checkTypes(kind Kind, env Env, op string, args []*operand, allowed []string) error {
	for _, o := range args {
		if o.value == "" {
			continue
		}
		if t := TypeOf(env.Values[o.value]); !slices.Contains(allowed, t) {
			return kind.invalid("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", op, t)
		}
	}
	return nil
}

// checkBounds verifies two bounds of BETWEEN that are both values.
func checkBounds(kind Kind, low, high types.AttributeValue) error {
	if low == nil || high == nil {
		return nil
	}
	order, same := compare(low, high)
	switch {
	case !same:
		return kind.invalid("The BETWEEN operator requires same data type for lower and upper bounds; lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s",
			show(low), show(high))
	case order > 0:
		return kind.invalid("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s",
			show(low), show(high))
	}
	return nil
}

func checkTypeName(kind Kind, v types.AttributeValue) error {
	s, ok := v.(*types.AttributeValueMemberS)
	switch {
	case !ok:
		return kind.invalid("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: %s", TypeOf(v))
	case !slices.Contains(attributeTypes, s.Value):
		return kind.invalid("Invalid attribute type name found; type: %s, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}", s.Value)
	}
	return nil
}

// show prints a scalar for a message.
func show(v types.AttributeValue) string {
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		return "{S:" + x.Value + "}"
	case *types.AttributeValueMemberN:
		return "{N:" + x.Value + "}"
	}
	return "{" + TypeOf(v) + "}"
}
