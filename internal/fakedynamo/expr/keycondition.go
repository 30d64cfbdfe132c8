package expr

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// KeyRange is what a key condition selects: one partition and, when Op is not
// empty, a part of its sort keys.
type KeyRange struct {
	Partition types.AttributeValue
	Op        string // "", "=", "<", "<=", ">", ">=", "BETWEEN" or "begins_with"
	Sort      []types.AttributeValue
}

// KeyRange reads a key condition for the given key attributes. sort is "" when
// the table has no sort key. The request must have passed [Env.Check].
func (c *Condition) KeyRange(env Env, partition, sort string) (KeyRange, error) {
	parts := []*condition{c.root}
	if c.root.op == "AND" {
		parts = c.root.subs
	}
	var r KeyRange
	for _, p := range parts {
		name, values, err := p.keyPart(env)
		if err != nil {
			return KeyRange{}, err
		}
		switch {
		case name == partition && r.Partition == nil && p.op == "=":
			r.Partition = values[0]
		case name == sort && sort != "" && r.Op == "":
			r.Op, r.Sort = p.op, values
		case name == partition && r.Partition == nil:
			return KeyRange{}, errorf("Query key condition not supported")
		case name == partition || name == sort:
			return KeyRange{}, errorf("KeyConditionExpressions must only contain one condition per key")
		default:
			return KeyRange{}, errorf("Query condition missed key schema element: %s", partition)
		}
	}
	if r.Partition == nil {
		return KeyRange{}, errorf("Query condition missed key schema element: %s", partition)
	}
	return r, nil
}

// keyPart takes a comparison of one attribute with values apart.
func (c *condition) keyPart(env Env) (name string, values []types.AttributeValue, err error) {
	switch c.op {
	case "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with":
	default:
		return "", nil, errorf("Invalid operator used in KeyConditionExpression: %s", c.op)
	}
	if len(c.args[0].path) != 1 {
		return "", nil, errorf("Query key condition not supported")
	}
	for _, o := range c.args[1:] {
		if o.value == "" {
			return "", nil, errorf("Query key condition not supported")
		}
		values = append(values, env.Values[o.value])
	}
	return env.name(c.args[0].path[0]), values, nil
}
