package fakedynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A search through millions of interleavings needs about 200,000 conditional
// updates a second.
func BenchmarkUpdateItem(b *testing.B) {
	s := newServer(b)
	b.ReportAllocs()
	for b.Loop() {
		updateOnce(b, s.API())
	}
}

func BenchmarkUpdateItemHTTP(b *testing.B) {
	s := newServer(b)
	db := once(s)
	b.ReportAllocs()
	for b.Loop() {
		updateOnce(b, db)
	}
}

// updateOnce is a typical renewal.
func updateOnce(t testing.TB, db database) {
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: key("a"),
		UpdateExpression:         aws.String("SET #o = :o, #r = :r, #l = :l, #d = :d REMOVE #x"),
		ConditionExpression:      aws.String("attribute_not_exists(#o) OR (#o = :o AND #r = :r)"),
		ExpressionAttributeNames: map[string]string{"#o": "ownerName", "#r": "recordVersionNumber", "#l": "leaseDuration", "#d": "data", "#x": "isReleased"},
		ExpressionAttributeValues: item{
			":o": str("me"), ":r": str("1"), ":l": str("20000"), ":d": str("some payload"),
		},
		ReturnValues: types.ReturnValueAllNew,
	}
	if _, err := db.UpdateItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
