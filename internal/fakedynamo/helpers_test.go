package fakedynamo_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/fakedynamo/contract"
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func key(s string) item { return item{"id": str(s)} }

const table = "locks"

// database and streams are what both fronts offer.
type (
	database = contract.Database
	streams  = contract.Streams
)

var (
	_ database = (*dynamodb.Client)(nil)
	_ database = (*fakedynamo.API)(nil)
	_ streams  = (*dynamodbstreams.Client)(nil)
	_ streams  = (*fakedynamo.API)(nil)
)

// once is a client that does not retry.
func once(s *fakedynamo.Server) *dynamodb.Client {
	return s.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

// fronts gives both fronts of a server, without retries.
func fronts(s *fakedynamo.Server) map[string]database {
	return map[string]database{"http": once(s), "go": s.API()}
}

// newServer is an empty server with the table "locks" that has a stream.
func newServer(t testing.TB, optFns ...func(*fakedynamo.Options)) *fakedynamo.Server {
	t.Helper()
	s := fakedynamo.New(optFns...)
	t.Cleanup(s.Close)
	_, err := s.API().CreateTable(t.Context(), tableInput())
	if err != nil {
		t.Fatal(err)
	}
	s.Requests().Reset()
	return s
}

func tableInput() *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:            aws.String(table),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	}
}

// set is an update of attribute v.
func set(id, v string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: key(id), UpdateExpression: aws.String("SET v = :v"),
		ExpressionAttributeValues: item{":v": str(v)}, ReturnValues: types.ReturnValueAllNew,
	}
}

func transaction(ids ...string) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{}
	for _, id := range ids {
		u := set(id, "t")
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ExpressionAttributeValues: u.ExpressionAttributeValues,
		}})
	}
	return in
}

// stored is the attribute v of an item, "" when there is none.
func stored(s *fakedynamo.Server, id string) string {
	if v, ok := s.Item(table, key(id))["v"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}
