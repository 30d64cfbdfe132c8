package limiterproxy_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/limiterproxy"
)

const table = "locks"

// bed is a simulated endpoint behind a proxy, with one table.
type bed struct {
	*limiterproxy.Proxy
	server *fakedynamo.Server
	db     *dynamodb.Client
	api    *dynamodbstreams.Client
	arn    *string
}

func newBed(t *testing.T, optFns ...func(*limiterproxy.Options)) *bed {
	t.Helper()
	b := &bed{server: fakedynamo.New()}
	endpoint := httptest.NewServer(b.server)
	p, err := limiterproxy.Start(endpoint.URL, b.server.StreamsClient(), optFns...)
	if err != nil {
		t.Fatal(err)
	}
	b.Proxy = p
	t.Cleanup(func() {
		for range 2 {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		endpoint.Close()
		b.server.Close()
	})
	b.db = b.server.Client(func(o *dynamodb.Options) { o.BaseEndpoint, o.HTTPClient = aws.String(p.Endpoint()), http.DefaultClient })
	b.api = b.server.StreamsClient(func(o *dynamodbstreams.Options) {
		o.BaseEndpoint, o.HTTPClient, o.Retryer = aws.String(p.Endpoint()), http.DefaultClient, aws.NopRetryer{}
	})
	out, err := b.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(table),
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.arn = out.TableDescription.LatestStreamArn
	return b
}

func (b *bed) put(t *testing.T, key string) {
	t.Helper()
	_, err := b.db.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(table), Item: map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// iterator begins at the oldest record of the only shard.
func (b *bed) iterator(t *testing.T) *string {
	t.Helper()
	out, err := b.api.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
		StreamArn: b.arn, ShardId: aws.String(b.server.Shards(table).Open()[0]), ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.ShardIterator
}

func throttled(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ThrottlingException"
}

func TestReadersShareALimit(t *testing.T) {
	b := newBed(t)
	iterators := []*string{b.iterator(t), b.iterator(t), b.iterator(t)}
	good, refused := 0, 0
	began := time.Now()
	for range 10 {
		for i := range iterators {
			out, err := b.api.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: iterators[i]})
			switch {
			case err == nil:
				good++
				iterators[i] = out.NextShardIterator
			case throttled(err):
				refused++
			default:
				t.Fatal(err)
			}
		}
	}
	most := 5 + 5*time.Since(began).Seconds() + 1
	if good < 5 || float64(good) > most || refused != 30-good {
		t.Errorf("%d reads and %d refused in %v", good, refused, time.Since(began))
	}
	lists := 0
	began = time.Now()
	for range 30 {
		if _, err := b.api.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: b.arn}); err == nil {
			lists++
		} else if !throttled(err) {
			t.Fatal(err)
		}
	}
	if most := 10 + 10*time.Since(began).Seconds() + 1; lists < 10 || float64(lists) > most {
		t.Errorf("%d lists in %v", lists, time.Since(began))
	}
	if c := b.Counts(); c.GetRecords != good || c.Throttled != refused || c.ListsThrottled != 30-lists {
		t.Errorf("counts %+v", c)
	}
}

// A record is not seen before its time, and every one is seen once and in order.
func TestVisibility(t *testing.T) {
	const delay = 300 * time.Millisecond
	b := newBed(t, func(o *limiterproxy.Options) { o.Visibility, o.ReadsPerSecond = delay, 1000 })
	it := b.iterator(t)
	written := map[string]time.Time{}
	want := []string{"a", "b", "c"}
	var got []string
	next := 0
	for began := time.Now(); len(got) < len(want) && time.Since(began) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		if next < len(want) && time.Since(began) > time.Duration(next)*100*time.Millisecond {
			written[want[next]] = time.Now()
			b.put(t, want[next])
			next++
		}
		out, err := b.api.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it})
		if err != nil {
			t.Fatal(err)
		}
		it = out.NextShardIterator
		for _, r := range out.Records {
			key := r.Dynamodb.Keys["key"].(*streamtypes.AttributeValueMemberS).Value
			if age := time.Since(written[key]); age < delay {
				t.Errorf("%s is seen after %v", key, age)
			}
			got = append(got, key)
		}
	}
	if len(got) != 3 || got[0] != "a" || got[1] != "b" || got[2] != "c" {
		t.Errorf("got %v", got)
	}
	if b.Counts().HeldBack == 0 {
		t.Error("nothing was held back")
	}
}

func TestBadInput(t *testing.T) {
	server := fakedynamo.New()
	defer server.Close()
	for _, endpoint := range []string{"", "::", "localhost"} {
		if p, err := limiterproxy.Start(endpoint, server.StreamsClient()); err == nil {
			t.Errorf("%q is taken: %v", endpoint, p.Close())
		}
	}
	if p, err := limiterproxy.Start("http://127.0.0.1:1", server.StreamsClient(), func(o *limiterproxy.Options) { o.ReadsPerSecond = 0 }); err == nil {
		t.Errorf("no limit is taken: %v", p.Close())
	}
}
