package lockclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DescribeTableAPI is the part of *dynamodb.Client that SchemaOf uses.
type DescribeTableAPI interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// SchemaOf reads the names of a table's keys, for Options.Schema. A sort key's value is
// the caller's to choose. The error is an *Error: ErrNoTable, ErrSchema for a table whose
// keys are not strings (no lock can live there), or the cause.
func SchemaOf(ctx context.Context, db DescribeTableAPI, table string) (Schema, error) {
	schema, err := schemaOf(ctx, db, table)
	if err != nil {
		return Schema{}, &Error{Op: "read schema", Table: table, Region: regionOf(db), Err: err}
	}
	return schema, nil
}

func schemaOf(ctx context.Context, db DescribeTableAPI, table string) (Schema, error) {
	out, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return Schema{}, explain(err)
	}
	if out.Table == nil {
		return Schema{}, errors.New("the answer has no table")
	}
	var s Schema
	for _, k := range keysOf(out.Table) {
		if k.kind != types.ScalarAttributeTypeS {
			return Schema{}, fmt.Errorf("%w: expected keys of type S, found %v", ErrSchema, k)
		}
		if k.role == types.KeyTypeHash {
			s.Partition = k.name
		} else {
			s.Sort = k.name
		}
	}
	return s, nil
}

// tableKey is one key attribute of a table.
type tableKey struct {
	role types.KeyType
	name string
	kind types.ScalarAttributeType
}

func (k tableKey) String() string { return fmt.Sprintf("%s %s (%s)", k.role, k.name, k.kind) }

func keysOf(desc *types.TableDescription) []tableKey {
	kinds := map[string]types.ScalarAttributeType{}
	for _, d := range desc.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	var keys []tableKey
	for _, k := range desc.KeySchema {
		name := aws.ToString(k.AttributeName)
		keys = append(keys, tableKey{role: k.KeyType, name: name, kind: kinds[name]})
	}
	return keys
}

// checkKeys compares the table's keys with the client's.
func (c *Client) checkKeys(desc *types.TableDescription) error {
	want := []tableKey{{types.KeyTypeHash, c.layout.Partition, types.ScalarAttributeTypeS}}
	if c.layout.Sort != "" {
		want = append(want, tableKey{types.KeyTypeRange, c.layout.Sort, types.ScalarAttributeTypeS})
	}
	if found := keysOf(desc); fmt.Sprint(found) != fmt.Sprint(want) {
		return fmt.Errorf("%w: expected %v, found %v", ErrSchema, want, found)
	}
	return nil
}
