package fakedynamo_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// Many writers count by compare-and-swap through both fronts; no count may be
// lost, and the stream must show each once and in order.
func TestConcurrentWriters(t *testing.T) {
	const writers, rounds = 8, 50
	s := newServer(t, func(o *fakedynamo.Options) { o.LogSize = 10 })
	var wg sync.WaitGroup
	for _, db := range fronts(s) {
		for range writers / 2 {
			wg.Go(func() {
				for done := 0; done < rounds; {
					out, err := db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key("n")})
					if err != nil {
						t.Error(err)
						return
					}
					in := update("n", "SET n = if_not_exists(n, :zero) + :one", "attribute_not_exists(n)", item{":zero": num("0"), ":one": num("1")}, nil)
					if n, ok := out.Item["n"]; ok {
						in = update("n", "SET n = n + :one", "n = :n", item{":one": num("1"), ":n": n}, nil)
					}
					switch _, err := db.UpdateItem(t.Context(), in); code(err) {
					case "":
						if err != nil {
							t.Error(err)
							return
						}
						done++
					case "ConditionalCheckFailedException":
					default:
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	n := s.Item(table, key("n"))["n"].(*types.AttributeValueMemberN).Value
	if want := strconv.Itoa(writers * rounds); n != want {
		t.Errorf("counted to %s, want %s", n, want)
	}
	if got := len(s.Records(table)); got != writers*rounds {
		t.Errorf("%d records", got)
	}
	if got := len(s.Requests().Log()); got != 10 {
		t.Errorf("the log has %d entries", got)
	}
	if c := s.Requests().Counts(); c["GetItem"] != c["UpdateItem"] || s.Requests().Total() != 2*c["GetItem"] {
		t.Errorf("counted %v", c)
	}
}
