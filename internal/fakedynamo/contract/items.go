package contract

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (s *suite) putAndDelete(t *testing.T) {
	key := newName()
	first := with(key, item{"a": num("1")})
	put := &dynamodb.PutItemInput{
		TableName: aws.String(s.table), Item: first,
		ConditionExpression: aws.String("attribute_not_exists(a)"), ReturnValues: types.ReturnValueAllOld,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	out, err := s.db.PutItem(t.Context(), put)
	if err != nil || len(out.Attributes) != 0 {
		t.Fatalf("first put: %v, %v", out, err)
	}
	_, err = s.db.PutItem(t.Context(), put)
	if f, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok || !equalItems(f.Item, first) {
		t.Errorf("second put: %v", err)
	}
	put.ConditionExpression, put.Item = nil, with(key, item{"b": num("2")})
	put.ReturnValuesOnConditionCheckFailure = ""
	if out, err = s.db.PutItem(t.Context(), put); err != nil || !equalItems(out.Attributes, first) {
		t.Errorf("replacing put: %v, %v", out, err)
	}
	del := &dynamodb.DeleteItemInput{
		TableName: aws.String(s.table), Key: item{"key": str(key)}, ReturnValues: types.ReturnValueAllOld,
		ConditionExpression:                 aws.String("attribute_exists(a)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, err = s.db.DeleteItem(t.Context(), del)
	if f, ok := errors.AsType[*types.ConditionalCheckFailedException](err); !ok || !equalItems(f.Item, put.Item) {
		t.Errorf("delete on a failed condition: %v", err)
	}
	del.ConditionExpression, del.ReturnValuesOnConditionCheckFailure = nil, ""
	gone, err := s.db.DeleteItem(t.Context(), del)
	if err != nil || !equalItems(gone.Attributes, put.Item) {
		t.Errorf("delete: %v, %v", gone, err)
	}
	if gone, err = s.db.DeleteItem(t.Context(), del); err != nil || len(gone.Attributes) != 0 {
		t.Errorf("delete of nothing: %v, %v", gone, err)
	}
	if got := s.get(t, s.table, del.Key); got != nil {
		t.Errorf("left after the delete: %v", got)
	}
}

func (s *suite) projection(t *testing.T) {
	key := newName()
	s.put(t, s.table, with(key, sample))
	for expression, want := range map[string]item{
		"s, n":              {"s": sample["s"], "n": sample["n"]},
		"#data, absent":     {"data": sample["data"]},
		"m.a":               {"m": object(item{"a": str("A")})},
		"m.a, m.k":          {"m": sample["m"]},
		"l[2].#in, l[0]":    {"l": list(str("x"), object(item{"in": str("deep")}))},
		"absent, m.nothing": {},
	} {
		out, err := s.db.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: aws.String(s.table), Key: item{"key": str(key)}, ConsistentRead: aws.Bool(true),
			ProjectionExpression: aws.String(expression), ExpressionAttributeNames: used(conditionNames, strings.ReplaceAll(expression, ",", " ")),
		})
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if !equalItems(out.Item, want) {
			t.Errorf("%s gives %v, want %v", expression, plainItem(out.Item), plainItem(want))
		}
	}
}

// invalidRequests are rejected whatever the item.
func (s *suite) invalidRequests(t *testing.T) {
	key := item{"key": str(newName())}
	valid := func() *dynamodb.UpdateItemInput {
		return &dynamodb.UpdateItemInput{
			TableName: aws.String(s.table), Key: key, UpdateExpression: aws.String("SET a = :a"),
			ExpressionAttributeValues: item{":a": num("1")},
		}
	}
	for name, c := range map[string]struct {
		change func(*dynamodb.UpdateItemInput)
		code   string
		text   string
	}{
		"unused value":    {func(in *dynamodb.UpdateItemInput) { in.ExpressionAttributeValues[":b"] = num("1") }, "ValidationException", "unused in expressions"},
		"unused name":     {func(in *dynamodb.UpdateItemInput) { in.ExpressionAttributeNames = map[string]string{"#b": "b"} }, "ValidationException", "unused in expressions"},
		"undefined value": {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("a = :b") }, "ValidationException", "not defined"},
		"undefined name":  {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("#b = :a") }, "ValidationException", "not defined"},
		"reserved word":   {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("shard = :a") }, "ValidationException", "reserved keyword"},
		"syntax":          {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("a = = :a") }, "ValidationException", "Syntax error"},
		"empty condition": {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("") }, "ValidationException", "can not be empty"},
		"open bracket":    {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("(a = :a") }, "ValidationException", "Syntax error"},
		"parentheses":     {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("((a = :a))") }, "ValidationException", "redundant parentheses"},
		"itself":          {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("a = a") }, "ValidationException", "distinct"},
		"no function":     {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("exists(a)") }, "ValidationException", "Invalid function name"},
		"bare size":       {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("size(a)") }, "ValidationException", ""},
		"operand type":    {func(in *dynamodb.UpdateItemInput) { in.ConditionExpression = aws.String("begins_with(a, :a)") }, "ValidationException", "Incorrect operand type"},
		"key schema":      {func(in *dynamodb.UpdateItemInput) { in.Key = item{"other": str("x")} }, "ValidationException", "does not match the schema"},
		"key type":        {func(in *dynamodb.UpdateItemInput) { in.Key = item{"key": num("1")} }, "ValidationException", ""},
		"extra key":       {func(in *dynamodb.UpdateItemInput) { in.Key = item{"key": str("x"), "b": str("x")} }, "ValidationException", ""},
		"empty key":       {func(in *dynamodb.UpdateItemInput) { in.Key = item{"key": str("")} }, "ValidationException", "empty string value"},
		"long key":        {func(in *dynamodb.UpdateItemInput) { in.Key = item{"key": str(strings.Repeat("k", 2049))} }, "ValidationException", "2048"},
		"empty set":       {func(in *dynamodb.UpdateItemInput) { in.ExpressionAttributeValues[":a"] = strs() }, "ValidationException", ""},
		"large item": {func(in *dynamodb.UpdateItemInput) {
			in.ExpressionAttributeValues[":a"] = str(strings.Repeat("x", 400<<10))
		}, "ValidationException", "maximum allowed size"},
		"no table": {func(in *dynamodb.UpdateItemInput) { in.TableName = aws.String(newName()) }, "ResourceNotFoundException", ""},
	} {
		if s.Lenient && name == "itself" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			in := valid()
			c.change(in)
			_, err := s.db.UpdateItem(t.Context(), in)
			s.wantError(t, err, c.code, c.text)
		})
	}
	if got := s.get(t, s.table, key); got != nil {
		t.Errorf("an invalid request made %v", got)
	}
	long := valid()
	long.Key = item{"key": str(strings.Repeat("k", 2048))}
	if _, err := s.db.UpdateItem(t.Context(), long); err != nil {
		t.Errorf("a key of 2048 bytes: %v", err)
	}
}
