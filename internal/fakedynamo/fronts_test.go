package fakedynamo_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// update makes an update with all that a case may need.
func update(id, expression, condition string, values item, names map[string]string) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: key(id), UpdateExpression: aws.String(expression),
		ExpressionAttributeValues: values, ExpressionAttributeNames: names,
		ReturnValues: types.ReturnValueAllNew, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	if condition != "" {
		in.ConditionExpression = aws.String(condition)
	}
	return in
}

// script is a conversation that is held through both fronts.
var script = []any{
	update("a", "SET #o = :o, n = if_not_exists(n, :one) + :one", "attribute_not_exists(#o)", item{":o": str("me"), ":one": num("1")}, map[string]string{"#o": "owner"}),
	update("a", "SET #o = :o", "attribute_not_exists(#o)", item{":o": str("me")}, map[string]string{"#o": "owner"}),
	update("a", "SET l = :l, m = :m, b = :b, t = :t, z = :z, ss = :ss, ns = :ns, bs = :bs", "", item{
		":l": &types.AttributeValueMemberL{Value: []types.AttributeValue{str("x"), num("1.50")}},
		":m": &types.AttributeValueMemberM{Value: item{"k": str("é\"\n\u2028")}},
		":b": &types.AttributeValueMemberB{Value: []byte{0, 255}}, ":t": &types.AttributeValueMemberBOOL{Value: true},
		":z": &types.AttributeValueMemberNULL{Value: true}, ":ss": &types.AttributeValueMemberSS{Value: []string{"b", "a"}},
		":ns": &types.AttributeValueMemberNS{Value: []string{"1.0", "2"}}, ":bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}},
	}, nil),
	update("a", "SET a = :v", "", item{":v": &types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}}, nil),
	update("a", "SET a = :v", "", item{":v": &types.AttributeValueMemberSS{}}, nil),
	update("a", "SET a = :v", "", item{":v": num("x")}, nil),
	update("a", "SET a = :v REMOVE", "", item{":v": num("1")}, nil),
	update("a", "SET a = missing", "", nil, nil),
	update("a", "SET a = :v", "", item{":v": str(strings.Repeat("x", 401<<10))}, nil),
	update("a", "SET a = :v", "", item{}, nil),
	update("a", "ADD ss :v DELETE ns :n", "size(l) = :two", item{":v": &types.AttributeValueMemberSS{Value: []string{"c"}}, ":n": &types.AttributeValueMemberNS{Value: []string{"2"}}, ":two": num("2")}, nil),
	&dynamodb.UpdateItemInput{TableName: aws.String(table), Key: key("only")},
	&dynamodb.UpdateItemInput{TableName: aws.String("elsewhere"), Key: key("a")},
	&dynamodb.UpdateItemInput{TableName: aws.String(table), Key: key("a"), ReturnValues: "NO"},
	&dynamodb.UpdateItemInput{TableName: aws.String("x"), Key: key("a")},
	&dynamodb.GetItemInput{TableName: aws.String(table), Key: key("a"), ConsistentRead: aws.Bool(true)},
	&dynamodb.GetItemInput{TableName: aws.String(table), Key: key("a"), ProjectionExpression: aws.String("m.k, l[1]")},
	&dynamodb.GetItemInput{TableName: aws.String(table), Key: key("absent")},
	&dynamodb.GetItemInput{TableName: aws.String(table), Key: item{"wrong": str("x")}},
	&dynamodb.PutItemInput{TableName: aws.String(table), Item: item{"id": str("p"), "n": num("1")}, ReturnValues: types.ReturnValueAllOld},
	&dynamodb.PutItemInput{TableName: aws.String(table), Item: item{"id": str("p")}, ReturnValues: types.ReturnValueAllOld},
	&dynamodb.PutItemInput{TableName: aws.String(table), Item: item{"id": num("1")}},
	&dynamodb.PutItemInput{TableName: aws.String(table), Item: item{"n": num("1")}},
	&dynamodb.PutItemInput{TableName: aws.String(table), Item: key("p"), ReturnValues: types.ReturnValueAllNew},
	&dynamodb.DeleteItemInput{TableName: aws.String(table), Key: key("p"), ReturnValues: types.ReturnValueAllOld},
	transaction("t1", "t2"),
	transaction("t1", "t1"),
	&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String(table), Item: key("new")}},
		{ConditionCheck: &types.ConditionCheck{
			TableName: aws.String(table), Key: key("t1"), ConditionExpression: aws.String("v = :v"), ExpressionAttributeValues: item{":v": str("q")},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
	}},
	&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Update: &types.Update{TableName: aws.String(table), Key: key("t1"), UpdateExpression: aws.String("SET v = v + :one"), ExpressionAttributeValues: item{":one": num("1")}}},
	}},
	&dynamodb.QueryInput{TableName: aws.String(table), KeyConditionExpression: aws.String("id = :id"), ExpressionAttributeValues: item{":id": str("a")}},
	&dynamodb.QueryInput{TableName: aws.String(table), KeyConditionExpression: aws.String("n = :id"), ExpressionAttributeValues: item{":id": str("a")}},
	&dynamodb.QueryInput{TableName: aws.String(table), KeyConditionExpression: aws.String("id = :id"), FilterExpression: aws.String("id <> :id"), ExpressionAttributeValues: item{":id": str("a")}},
	&dynamodb.QueryInput{TableName: aws.String(table)},
	&dynamodb.ScanInput{TableName: aws.String(table), Limit: aws.Int32(2)},
	&dynamodb.ScanInput{TableName: aws.String(table), Select: types.SelectCount},
	&dynamodb.ScanInput{TableName: aws.String(table), Segment: aws.Int32(3), TotalSegments: aws.Int32(2)},
	&dynamodb.DescribeTableInput{TableName: aws.String(table)},
	&dynamodb.DescribeTableInput{TableName: aws.String("elsewhere")},
	&dynamodb.UpdateTimeToLiveInput{TableName: aws.String(table), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)}},
	&dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)},
	&dynamodb.ListTablesInput{Limit: aws.Int32(1)},
	tableInput(),
	&dynamodb.DeleteTableInput{TableName: aws.String(table)},
	&dynamodb.DeleteTableInput{TableName: aws.String(table)},
}

// say carries an input of the script out.
func say(ctx context.Context, db database, in any) (any, error) {
	method := strings.TrimSuffix(reflect.TypeOf(in).Elem().Name(), "Input")
	res := reflect.ValueOf(db).MethodByName(method).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(in)})
	err, _ := res[1].Interface().(error)
	return res[0].Interface(), err
}

// essence is what must be the same in two answers.
func essence(out any, err error) map[string]any {
	if err == nil {
		v := reflect.ValueOf(out).Elem()
		v.FieldByName("ResultMetadata").SetZero()
		return map[string]any{"out": v.Interface()}
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"api": api}
}

func TestFrontsAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		http, plain := newServer(t), newServer(t)
		failed := 0
		for i, in := range script {
			a := essence(say(t.Context(), once(http), in))
			b := essence(say(t.Context(), plain.API(), in))
			if !reflect.DeepEqual(a, b) {
				t.Errorf("%d: %T:\nhttp %+v\ngo   %+v", i, in, a, b)
			}
			if _, ok := a["api"]; ok {
				failed++
			}
			if _, ok := a["error"]; ok {
				t.Errorf("%d: %T: %v", i, in, a)
			}
		}
		if failed < 15 || failed > len(script)-15 {
			t.Errorf("%d of %d requests fail: the script checks too little", failed, len(script))
		}
		if !maps.Equal(http.Requests().Counts(), plain.Requests().Counts()) {
			t.Errorf("counted %v and %v", http.Requests().Counts(), plain.Requests().Counts())
		}
	})
}

func TestServerTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		for name, db := range fronts(s) {
			s.SetClockOffset(3 * time.Hour)
			s.SetDateHeader(true)
			out, err := db.UpdateItem(t.Context(), set("a", "x"))
			if err != nil {
				t.Fatal(err)
			}
			at, ok := middleware.GetServerTime(out.ResultMetadata)
			if want := time.Now().Add(3 * time.Hour).Truncate(time.Second); !ok || !at.Equal(want) {
				t.Errorf("%s: the server's time is %v (%v), want %v", name, at, ok, want)
			}
			s.SetDateHeader(false)
			if out, err = db.UpdateItem(t.Context(), set("a", "x")); err != nil {
				t.Fatal(err)
			}
			if at, ok := middleware.GetServerTime(out.ResultMetadata); ok {
				t.Errorf("%s: without Date the server's time is %v", name, at)
			}
		}
	})
}

// What comes in and goes out shares nothing with the tables.
func TestFrontsShareNoMemory(t *testing.T) {
	s := fakedynamo.New()
	t.Cleanup(s.Close)
	db := s.API()
	if _, err := db.CreateTable(t.Context(), tableInput()); err != nil {
		t.Fatal(err)
	}
	b := []byte("bytes")
	m := item{"k": &types.AttributeValueMemberB{Value: b}}
	in := update("a", "SET m = :m", "", item{":m": &types.AttributeValueMemberM{Value: m}}, nil)
	out, err := db.UpdateItem(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(it item) {
		got := it["m"].(*types.AttributeValueMemberM).Value
		got["k"].(*types.AttributeValueMemberB).Value[0] = '!'
		got["more"] = str("x")
	}
	spoil(out.Attributes)
	b[0], m["more"] = '!', str("x")
	spoil(s.Item(table, key("a")))
	r := s.Records(table)
	if len(r) != 1 {
		t.Fatalf("%d records", len(r))
	}
	want := item{"id": str("a"), "m": &types.AttributeValueMemberM{Value: item{"k": &types.AttributeValueMemberB{Value: []byte("bytes")}}}}
	if got := s.Item(table, key("a")); !reflect.DeepEqual(got, want) {
		t.Errorf("the item has become %v", got)
	}
}

// A client whose clock is an hour off is refused once; the SDK then signs with
// the server's time.
func TestClockTolerance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, offset := range []time.Duration{time.Hour, -time.Hour} {
			s := newServer(t)
			s.SetClockTolerance(15 * time.Minute)
			s.SetClockOffset(offset)
			if _, err := once(s).UpdateItem(t.Context(), set("a", "x")); code(err) != "InvalidSignatureException" || stored(s, "a") != "" {
				t.Errorf("%v apart, without a retry: %v", offset, err)
			}
			db := s.Client()
			for want := 3; want <= 4; want++ {
				if _, err := db.UpdateItem(t.Context(), set("a", "x")); err != nil || s.Requests().Count("UpdateItem") != want {
					t.Errorf("%v apart: %v after %d requests, want %d", offset, err, s.Requests().Count("UpdateItem"), want)
				}
			}
		}
	})
}
