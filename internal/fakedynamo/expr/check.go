package expr

import (
	"bytes"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// maxDepth is how deep maps and lists may be nested.
const maxDepth = 32

// Check validates a value from outside and returns a deep copy of it with its
// numbers in canonical form.
func Check(v types.AttributeValue) (types.AttributeValue, error) {
	return check(v, 0)
}

// CheckItem is [Check] for all attributes of an item. A nil item gives an
// empty one.
func CheckItem(item Item) (Item, error) {
	return checkMap(item, 0)
}

func checkMap(m Item, depth int) (Item, error) {
	out := make(Item, len(m))
	for name, v := range m {
		if name == "" {
			return nil, errorf("One or more parameter values were invalid: Attribute name must not be empty")
		}
		c, err := check(v, depth)
		if err != nil {
			return nil, err
		}
		out[name] = c
	}
	return out, nil
}

func check(v types.AttributeValue, depth int) (types.AttributeValue, error) {
	if depth > maxDepth {
		return nil, errorf("Nesting Levels have exceeded supported limits")
	}
	if isNil(v) {
		return nil, errorf("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	}
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: x.Value}, nil
	case *types.AttributeValueMemberN:
		n, err := normalizeNumber(x.Value)
		if err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberN{Value: n}, nil
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: append([]byte{}, x.Value...)}, nil
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: x.Value}, nil
	case *types.AttributeValueMemberNULL:
		if !x.Value {
			return nil, errorf("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return &types.AttributeValueMemberNULL{Value: true}, nil
	case *types.AttributeValueMemberM:
		m, err := checkMap(x.Value, depth+1)
		if err != nil {
			return nil, err
		}
		return &types.AttributeValueMemberM{Value: m}, nil
	case *types.AttributeValueMemberL:
		return checkList(x.Value, depth+1)
	}
	return checkSet(v)
}

func checkList(l []types.AttributeValue, depth int) (types.AttributeValue, error) {
	out := make([]types.AttributeValue, len(l))
	for i, e := range l {
		c, err := check(e, depth)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return &types.AttributeValueMemberL{Value: out}, nil
}

func checkSet(v types.AttributeValue) (types.AttributeValue, error) {
	s, ok := setOf(v)
	if !ok {
		return nil, errorf("Supplied AttributeValue has an unknown type")
	}
	if len(s) == 0 {
		kind := map[string]string{"SS": "string", "NS": "number", "BS": "binary"}[TypeOf(v)]
		return nil, errorf("One or more parameter values were invalid: An %s set  may not be empty", kind)
	}
	c := append(set{}, s...)
	if _, numbers := v.(*types.AttributeValueMemberNS); numbers {
		for i, e := range c {
			n, err := normalizeNumber(e)
			if err != nil {
				return nil, err
			}
			c[i] = n
		}
	}
	if c.hasDuplicate() {
		return nil, errorf("One or more parameter values were invalid: Input collection [%s] contains duplicates.", strings.Join(s, ", "))
	}
	return c.value(v), nil
}

// isNil finds values that carry no type at all, also typed nil pointers.
func isNil(v types.AttributeValue) bool {
	switch x := v.(type) {
	case nil:
		return true
	case *types.AttributeValueMemberS:
		return x == nil
	case *types.AttributeValueMemberN:
		return x == nil
	case *types.AttributeValueMemberB:
		return x == nil
	case *types.AttributeValueMemberBOOL:
		return x == nil
	case *types.AttributeValueMemberNULL:
		return x == nil
	case *types.AttributeValueMemberM:
		return x == nil
	case *types.AttributeValueMemberL:
		return x == nil
	case *types.AttributeValueMemberSS:
		return x == nil
	case *types.AttributeValueMemberNS:
		return x == nil
	case *types.AttributeValueMemberBS:
		return x == nil
	}
	return false
}

// Clone copies a canonical value deeply, so that it can be given away.
func Clone(v types.AttributeValue) types.AttributeValue {
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: x.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: x.Value}
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: bytes.Clone(x.Value)}
	case *types.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: x.Value}
	case *types.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: x.Value}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: CloneItem(x.Value)}
	case *types.AttributeValueMemberL:
		out := make([]types.AttributeValue, len(x.Value))
		for i, e := range x.Value {
			out[i] = Clone(e)
		}
		return &types.AttributeValueMemberL{Value: out}
	}
	if s, ok := setOf(v); ok {
		return append(set{}, s...).value(v)
	}
	return nil
}

// CloneItem copies an item deeply. A nil item stays nil.
func CloneItem(item Item) Item {
	if item == nil {
		return nil
	}
	out := make(Item, len(item))
	for name, v := range item {
		out[name] = Clone(v)
	}
	return out
}
