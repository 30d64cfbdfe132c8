package streamwatcher

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// world is a simulated service with the table "locks" in a bubble, whose course follows
// from a seed alone: every roll of the dice belongs to one call or one goroutine, so the
// order in which goroutines run does not matter.
type world struct {
	*fakedynamo.Server
	fakedynamo.Shards
	seed uint64

	mu     sync.Mutex
	rolls  map[string]uint64
	breaks func(roll *rand.Rand, r *fakedynamo.Request) fakedynamo.Fault
	calls  int // to the stream
}

// newWorld makes the table. The bubble's clock begins in 2000, the server's much later.
func newWorld(ctx context.Context, seed uint64, optFns ...func(*fakedynamo.Options)) (*world, error) {
	w := &world{Server: fakedynamo.New(optFns...), seed: seed, rolls: make(map[string]uint64)}
	w.SetClockOffset(30 * 365 * 24 * time.Hour)
	w.Intercept(w.fate)
	w.Shards = w.Server.Shards("locks")
	_, err := w.API().CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String("locks"),
		KeySchema:            []dbtypes.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: dbtypes.KeyTypeHash}},
		AttributeDefinitions: []dbtypes.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: dbtypes.ScalarAttributeTypeS}},
		BillingMode:          dbtypes.BillingModePayPerRequest,
		StreamSpecification:  streamSpec(true),
	})
	return w, err
}

func streamSpec(on bool) *dbtypes.StreamSpecification {
	spec := &dbtypes.StreamSpecification{StreamEnabled: &on}
	if on {
		spec.StreamViewType = dbtypes.StreamViewTypeNewAndOldImages
	}
	return spec
}

// renewStream disables the stream and enables it again, which gives it a new ARN.
func (w *world) renewStream(ctx context.Context, pause time.Duration) error {
	for _, on := range []bool{false, true} {
		if _, err := w.API().UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: aws.String("locks"), StreamSpecification: streamSpec(on)}); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// dice are those of one goroutine or purpose.
func (w *world) dice(purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // never fails
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// chanceFor makes the watcher's jitter follow from the seed.
func (w *world) chanceFor(goroutine string) chance { return w.dice(goroutine).Float64 }

// fate decides over one request: how long it takes and what goes wrong. It depends on
// the seed and on how many like it there were before.
func (w *world) fate(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
	target := r.Op
	switch r.Op {
	case "GetRecords", "GetShardIterator":
		target += "/" + r.Shard
	case "DescribeStream", "DescribeTable":
	default:
		return fakedynamo.Fault{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.rolls[target]
	w.rolls[target]++
	if r.Op != "DescribeTable" {
		w.calls++
	}
	roll := w.dice(target + "/" + strconv.FormatUint(n, 10))
	var f fakedynamo.Fault
	if w.breaks != nil {
		f = w.breaks(roll, r)
	}
	f.DelayRequest += time.Millisecond + time.Duration(roll.Int64N(int64(8*time.Millisecond)))
	return f
}

func (w *world) streamCalls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// setBreaks sets what goes wrong from now on; nil is nothing.
func (w *world) setBreaks(f func(roll *rand.Rand, r *fakedynamo.Request) fakedynamo.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaks = f
}

// The codes that the service gives, and those of a broken network.
var (
	throttleCodes = []string{"ThrottlingException", "LimitExceededException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"}
	brokenCodes   = []string{"InternalServerError", "ServiceUnavailable", "ExpiredTokenException", "UnrecognizedClientException"}
	streamCodes   = []string{"ExpiredIteratorException", "TrimmedDataAccessException", "ResourceNotFoundException", "ValidationException"}
)

// anyFault is one of everything that can go wrong with a call.
func anyFault(roll *rand.Rand) fakedynamo.Fault {
	code := func(codes []string) fakedynamo.Fault {
		return fakedynamo.Fault{Error: &fakedynamo.APIError{Code: codes[roll.IntN(len(codes))], Message: "simulated"}}
	}
	switch roll.IntN(9) {
	case 0:
		return code(streamCodes)
	case 1, 2:
		return code(brokenCodes)
	case 3:
		return fakedynamo.Fault{DropRequest: true} // a hung connection
	case 4:
		return fakedynamo.Fault{DropResponse: true}
	case 5:
		return fakedynamo.Fault{Reset: true, AfterApply: roll.IntN(2) == 0}
	case 6:
		return fakedynamo.Fault{TruncateBody: true}
	case 7:
		return fakedynamo.Fault{Error: errors.New("dial tcp: no such host")}
	}
	return code(throttleCodes)
}

// faultsAt makes so many of 100 calls fail.
func faultsAt(percent int) func(*rand.Rand, *fakedynamo.Request) fakedynamo.Fault {
	return func(roll *rand.Rand, _ *fakedynamo.Request) fakedynamo.Fault {
		if roll.IntN(100) >= percent {
			return fakedynamo.Fault{}
		}
		return anyFault(roll)
	}
}

// front is how a watcher reaches the world: through the SDK's clients, whose HTTP goes
// to the simulator, or without them. Retries of the SDK's own would be random.
func (w *world) front(sdk bool) (TableAPI, StreamsAPI) {
	if sdk {
		return w.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }), w.StreamsClient()
	}
	api := w.API()
	return api, api
}

// closeIn ends watcher and world; what is left makes the bubble fail.
func (w *world) closeWith(t *testing.T, watcher *Watcher) {
	if err := watcher.Close(context.Background()); err != nil {
		t.Error(err)
	}
	w.Server.Close()
}
