package fakedynamo_test

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

func TestTableDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakedynamo.New(func(o *fakedynamo.Options) { o.TableDelay = 5 * time.Second })
		t.Cleanup(s.Close)
		db := s.Client()
		status := func() types.TableStatus {
			out, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
			if err != nil {
				return types.TableStatus(code(err))
			}
			return out.Table.TableStatus
		}
		expect := func(want types.TableStatus) {
			t.Helper()
			if got := status(); got != want {
				t.Errorf("the table is %s, want %s", got, want)
			}
		}
		if _, err := db.CreateTable(t.Context(), tableInput()); err != nil {
			t.Fatal(err)
		}
		expect(types.TableStatusCreating)
		if _, err := db.UpdateItem(t.Context(), set("a", "x")); code(err) != "ResourceNotFoundException" {
			t.Errorf("a write on a table in creation gives %v", err)
		}
		start := time.Now()
		if err := dynamodb.NewTableExistsWaiter(db).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 5*time.Second {
			t.Errorf("active after %v", took)
		}
		off := &dynamodb.UpdateTableInput{TableName: aws.String(table), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}}
		if _, err := db.UpdateTable(t.Context(), off); err != nil {
			t.Fatal(err)
		}
		expect(types.TableStatusUpdating)
		if _, err := db.UpdateTable(t.Context(), off); code(err) != "ResourceInUseException" {
			t.Errorf("an update meanwhile gives %v", err)
		}
		if _, err := db.UpdateItem(t.Context(), set("a", "x")); err != nil {
			t.Errorf("a write meanwhile gives %v", err)
		}
		time.Sleep(5 * time.Second)
		expect(types.TableStatusActive)
		if _, err := db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(table)}); err != nil {
			t.Fatal(err)
		}
		expect(types.TableStatusDeleting)
		time.Sleep(5 * time.Second)
		expect("ResourceNotFoundException")
	})
}

func TestExpireTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		if _, err := s.ExpireTTL(table); code(err) == "" && err == nil {
			t.Error("TTL is not enabled, and there is no error")
		}
		_, err := s.API().UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(table), TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
		})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().Unix()
		for id, ttl := range map[string]types.AttributeValue{
			"past": num(strconv.FormatInt(now-1, 10)), "now": num(strconv.FormatInt(now, 10)),
			"future": num(strconv.FormatInt(now+3600, 10)), "text": str("1"), "ancient": num("1"),
		} {
			if err := s.PutRaw(table, item{"id": str(id), "ttl": ttl}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.PutRaw(table, key("none")); err != nil {
			t.Fatal(err)
		}
		if n, err := s.ExpireTTL(table); n != 2 || err != nil {
			t.Errorf("%d items have expired, %v", n, err)
		}
		s.SetClockOffset(2 * time.Hour)
		if n, err := s.ExpireTTL(table); n != 1 || err != nil {
			t.Errorf("two hours later %d items have expired, %v", n, err)
		}
		if err := s.DeleteRaw(table, key("text")); err != nil {
			t.Fatal(err)
		}
		var service, others []string
		for _, r := range s.Records(table) {
			id := r.Dynamodb.Keys["id"].(*streamtypes.AttributeValueMemberS).Value
			switch u := r.UserIdentity; {
			case r.EventName != streamtypes.OperationTypeRemove:
			case u != nil && *u.Type == "Service" && *u.PrincipalId == "dynamodb.amazonaws.com" && len(r.Dynamodb.OldImage) == 2:
				service = append(service, id)
			default:
				others = append(others, id)
			}
		}
		slices.Sort(service)
		if !slices.Equal(service, []string{"future", "now", "past"}) || !slices.Equal(others, []string{"text"}) {
			t.Errorf("removed by the service: %v, by others: %v", service, others)
		}
	})
}

// shardOf gives the only shard of a stream.
func shardOf(t *testing.T, st streams, arn *string) streamtypes.Shard {
	t.Helper()
	out, err := st.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	if err != nil || len(out.StreamDescription.Shards) != 1 {
		t.Fatalf("describe: %+v, %v", out, err)
	}
	return out.StreamDescription.Shards[0]
}

func TestStreamEndsWhenDisabled(t *testing.T) {
	for name, choose := range map[string]func(*fakedynamo.Server) streams{
		"http": func(s *fakedynamo.Server) streams { return s.StreamsClient() },
		"go":   func(s *fakedynamo.Server) streams { return s.API() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				st, db := choose(s), s.API()
				d, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
				if err != nil {
					t.Fatal(err)
				}
				arn := d.Table.LatestStreamArn
				shard := shardOf(t, st, arn)
				if shard.SequenceNumberRange.EndingSequenceNumber != nil {
					t.Error("the open shard has an end")
				}
				for _, v := range []string{"1", "2", "3"} {
					if _, err := db.UpdateItem(t.Context(), set("a", v)); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String(table), StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(false)}}); err != nil {
					t.Fatal(err)
				}
				if _, err := db.UpdateItem(t.Context(), set("a", "unseen")); err != nil {
					t.Fatal(err)
				}
				if shardOf(t, st, arn).SequenceNumberRange.EndingSequenceNumber == nil {
					t.Error("the closed shard has no end")
				}
				it, err := st.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
				if err != nil {
					t.Fatal(err)
				}
				first, err := st.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator, Limit: aws.Int32(2)})
				if err != nil || len(first.Records) != 2 || first.NextShardIterator == nil {
					t.Fatalf("first page: %+v, %v", first, err)
				}
				last, err := st.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: first.NextShardIterator})
				if err != nil || len(last.Records) != 1 || last.NextShardIterator != nil {
					t.Fatalf("last page: %+v, %v", last, err)
				}
				time.Sleep(15*time.Minute + time.Second)
				_, err = st.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it.ShardIterator})
				if code(err) != "ExpiredIteratorException" {
					t.Errorf("an old iterator gives %v", err)
				}
			})
		})
	}
}

func TestPagesOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(o *fakedynamo.Options) { o.PageBytes = 100 })
		for i := range 10 {
			if err := s.PutRaw(table, item{"id": str("id" + strconv.Itoa(i)), "filler": str("01234567890123456789")}); err != nil {
				t.Fatal(err)
			}
		}
		pages, items := 0, 0
		p := dynamodb.NewScanPaginator(s.API(), &dynamodb.ScanInput{TableName: aws.String(table)})
		for p.HasMorePages() {
			out, err := p.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pages++
			items += len(out.Items)
		}
		if items != 10 || pages != 3 {
			t.Errorf("%d items on %d pages", items, pages)
		}
	})
}
