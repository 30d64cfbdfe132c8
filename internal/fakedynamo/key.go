package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// The service's limits on keys, in bytes.
const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
)

// keyAttr is a key attribute of a table. A table without a sort key has one
// with an empty name.
type keyAttr struct {
	name string
	kind types.ScalarAttributeType
}

// rowKey places an item: encoded partition key and sort key. Encoded sort
// keys are in the order of the keys.
type rowKey struct{ partition, sort string }

// keyOf checks the key attributes of an item or a key and encodes them.
// whole demands that there are no other attributes.
func (t *table) keyOf(attrs expr.Item, whole bool) (rowKey, error) {
	want := 1
	if t.sort.name != "" {
		want = 2
	}
	if whole && len(attrs) != want {
		return rowKey{}, invalid("The provided key element does not match the schema")
	}
	p, err := encodeKey(t.partition, attrs, whole, maxPartitionKey, "hashkey")
	if err != nil || want == 1 {
		return rowKey{partition: p}, err
	}
	k, err := encodeKey(t.sort, attrs, whole, maxSortKey, "rangekey")
	return rowKey{partition: p, sort: k}, err
}

// encodeKey encodes one key attribute.
func encodeKey(k keyAttr, attrs expr.Item, whole bool, limit int, role string) (string, error) {
	v, ok := attrs[k.name]
	if !ok || expr.TypeOf(v) != string(k.kind) {
		return "", keyMismatch(k, v, whole)
	}
	text, err := keyText(v)
	switch {
	case err != nil:
		return "", invalidExpr(err)
	case text == "" && k.kind == types.ScalarAttributeTypeB:
		return "", invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty binary value. Key: %s", k.name)
	case text == "":
		return "", invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", k.name)
	case len(text) > limit:
		return "", invalid("One or more parameter values were invalid: Size of %s has exceeded the maximum size limit of %d bytes", role, limit)
	}
	return text, nil
}

// keyMismatch words the error for a key attribute that is absent or of a wrong
// type: differently for a key and for an item to put.
func keyMismatch(k keyAttr, v types.AttributeValue, whole bool) error {
	switch {
	case whole:
		return invalid("The provided key element does not match the schema")
	case v == nil:
		return invalid("One or more parameter values were invalid: Missing the key %s in the item", k.name)
	}
	return invalid("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", k.name, k.kind, expr.TypeOf(v))
}

// keyText encodes a key value in an order-preserving way.
func keyText(v types.AttributeValue) (string, error) {
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		return x.Value, nil
	case *types.AttributeValueMemberB:
		return string(x.Value), nil
	case *types.AttributeValueMemberN:
		return expr.SortableNumber(x.Value)
	}
	return "", nil
}

// keyItem gives the key attributes of an item.
func (t *table) keyItem(item expr.Item) expr.Item {
	out := expr.Item{t.partition.name: item[t.partition.name]}
	if t.sort.name != "" {
		out[t.sort.name] = item[t.sort.name]
	}
	return out
}

// plainKey renders a key for the log.
func (t *table) plainKey(attrs expr.Item) string {
	key := plainValue(attrs[t.partition.name])
	if t.sort.name != "" {
		key += "/" + plainValue(attrs[t.sort.name])
	}
	return key
}

func plainValue(v types.AttributeValue) string {
	switch x := v.(type) {
	case *types.AttributeValueMemberS:
		if x != nil {
			return x.Value
		}
	case *types.AttributeValueMemberN:
		if x != nil {
			return x.Value
		}
	case *types.AttributeValueMemberB:
		if x != nil {
			return string(x.Value)
		}
	}
	return ""
}
