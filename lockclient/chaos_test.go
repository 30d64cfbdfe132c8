package lockclient

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// dice is a source of chance that many goroutines share.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newDice(seed, part uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, part))} }

func (d *dice) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64()
}

func (d *dice) chance(p float64) bool { return d.float() < p }

func (d *dice) upTo(max time.Duration) time.Duration {
	return time.Duration(d.float() * float64(max))
}

func (d *dice) pick(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// anyFault is one of all that can become of a request. late is how much later than sent
// a request may be applied.
func (d *dice) anyFault(lease, late time.Duration) fakedynamo.Fault {
	failed := &fakedynamo.APIError{Code: "InternalServerError", Status: 500}
	switch d.pick(13) {
	case 0:
		return fakedynamo.Fault{DelayRequest: d.upTo(lease / 3)}
	case 1:
		return fakedynamo.Fault{DelayResponse: d.upTo(lease / 3)}
	case 2:
		return fakedynamo.Fault{DelayRequest: d.upTo(lease / 8), DelayResponse: d.upTo(lease / 8)}
	case 3:
		return fakedynamo.Fault{DropRequest: true}
	case 4:
		return fakedynamo.Fault{DropResponse: true}
	case 5:
		return fakedynamo.Fault{Reset: true}
	case 6:
		return fakedynamo.Fault{Reset: true, AfterApply: true}
	case 7:
		return fakedynamo.Fault{Error: failed}
	case 8:
		return fakedynamo.Fault{Error: failed, AfterApply: true}
	case 9:
		return fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "ThrottlingException"}}
	case 10:
		return fakedynamo.Fault{TransactionConflict: true}
	case 11:
		return fakedynamo.Fault{TruncateBody: true}
	}
	return fakedynamo.Fault{ApplyLate: d.upTo(late) + 1, Reset: d.chance(0.5)}
}

// streamed tells w.events of every change in the table, whoever made it, in the ways
// that the contract of a notifier allows: late, twice, or lost with a resync after it.
// Where lies is set it also says what never happened. It ends with ctx.
type streamed struct {
	w     *world
	d     *dice
	lies  bool
	delay time.Duration
}

func (n *streamed) run(ctx context.Context) {
	api := n.w.server.API()
	out, err := api.ListStreams(ctx, &dynamodbstreams.ListStreamsInput{TableName: aws.String(testTable)})
	if err != nil || len(out.Streams) == 0 {
		return
	}
	desc, err := api.DescribeStream(ctx, &dynamodbstreams.DescribeStreamInput{StreamArn: out.Streams[0].StreamArn})
	if err != nil {
		return
	}
	it, err := api.GetShardIterator(ctx, &dynamodbstreams.GetShardIteratorInput{
		StreamArn: out.Streams[0].StreamArn, ShardId: desc.StreamDescription.Shards[0].ShardId, ShardIteratorType: types.ShardIteratorTypeTrimHorizon,
	})
	next := it.ShardIterator
	for err == nil && sleep(ctx, 100*time.Millisecond) {
		var page *dynamodbstreams.GetRecordsOutput
		if page, err = api.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: next}); err != nil {
			return
		}
		for _, r := range page.Records {
			n.deliver(ctx, changeOf(r))
		}
		next = page.NextShardIterator
	}
}

func (n *streamed) deliver(ctx context.Context, ch lockevent.Change) {
	later := func(d time.Duration, ch lockevent.Change) {
		time.AfterFunc(d, func() {
			if ctx.Err() == nil {
				n.w.events.tell(ch)
			}
		})
	}
	if n.lies && n.d.chance(0.3) {
		later(n.d.upTo(n.delay), n.lie(ch))
	}
	switch {
	case n.d.chance(0.05): // lost, and said so
		later(n.delay+n.d.upTo(time.Second), lockevent.Change{Kind: lockevent.Resync})
		return
	case n.d.chance(0.1): // twice, the second time out of order
		later(n.d.upTo(2*n.delay), ch)
	}
	later(n.delay, ch)
}

// lie twists a change in one or several of its parts.
func (n *streamed) lie(ch lockevent.Change) lockevent.Change {
	if n.d.chance(0.4) {
		ch.Kind, ch.Held = lockevent.Kind(n.d.pick(9)), n.d.chance(0.5)
	}
	if n.d.chance(0.5) {
		ch.Lease = []time.Duration{0, time.Millisecond, time.Hour}[n.d.pick(3)]
	}
	if n.d.chance(0.3) {
		ch.RVN = "forged"
	}
	if n.d.chance(0.3) {
		ch.Token += int64(n.d.pick(5)) - 2
	}
	if n.d.chance(0.3) {
		ch.SeenAt = time.Now().Add(-n.d.upTo(time.Hour))
	}
	return ch
}

// changeOf is what a notifier makes of a record.
func changeOf(r types.Record) lockevent.Change {
	before, after := image(r.Dynamodb.OldImage), image(r.Dynamodb.NewImage)
	name, _ := lockitem.Layout{Partition: lockattr.Key}.Name(plain(r.Dynamodb.Keys))
	ch := lockevent.Change{Name: name, Kind: lockitem.Classify(before, after)}
	switch {
	case after != nil:
		ch.RVN, ch.Token, ch.Lease, ch.Held = after.RVN, after.Token, after.Lease, !after.Released
	case before != nil:
		ch.Token = before.Token
	}
	return ch
}

func image(m map[string]types.AttributeValue) *lockitem.Item {
	it, err := lockitem.Decode(plain(m))
	if err != nil {
		return nil
	}
	return &it
}

// plain turns an image of the stream into an item of the table.
func plain(m map[string]types.AttributeValue) map[string]ddbtypes.AttributeValue {
	out := map[string]ddbtypes.AttributeValue{}
	for name, v := range m {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			out[name] = &ddbtypes.AttributeValueMemberS{Value: v.Value}
		case *types.AttributeValueMemberN:
			out[name] = &ddbtypes.AttributeValueMemberN{Value: v.Value}
		case *types.AttributeValueMemberB:
			out[name] = &ddbtypes.AttributeValueMemberB{Value: v.Value}
		}
	}
	return out
}
