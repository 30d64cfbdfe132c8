package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockclient"
)

// Options configure a Table. The zero value of each field is its default.
type Options struct {
	// TableName is what clients call the table; "locks".
	TableName string
	// Latency is spent by every request of a client, half before and half after the
	// table is touched; none.
	Latency time.Duration
}

// Table is an in-memory lock table with any number of clients. It is safe for concurrent
// use.
type Table struct {
	t      testing.TB
	opt    Options
	server *fakedynamo.Server
	layout lockitem.Layout

	ctx  context.Context // of everything that plays other processes
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex // never held over a wait
	clients  []*lockclient.Client
	last     map[string]*lockitem.Item      // what the watches were told last, by key; absent ones are not in it
	watches  map[string]map[*watch]struct{} // by key
	faults   []faults
	requests Requests
	waiters  map[string]map[*lockclient.Client]struct{} // the clients whose contender waits, by key
	changed  chan struct{}                              // closed and replaced when waiters grows
}

// New makes an empty table that lasts as long as the test. Everything that it starts is
// ended by t.Cleanup, the clients first: whatever they still hold is released.
//
// In virtual time, the table must be made inside the testing/synctest bubble, with the
// bubble's t, whose cleanups run inside the bubble. Otherwise it is in real time.
func New(t testing.TB, optFns ...func(*Options)) *Table {
	t.Helper()
	o := Options{TableName: "locks"}
	for _, fn := range optFns {
		fn(&o)
	}
	tab := &Table{
		t: t, opt: o, server: fakedynamo.New(), layout: lockitem.Layout{Partition: lockattr.Key},
		last: map[string]*lockitem.Item{}, watches: map[string]map[*watch]struct{}{},
		waiters: map[string]map[*lockclient.Client]struct{}{}, changed: make(chan struct{}),
	}
	tab.ctx, tab.stop = context.WithCancel(context.Background())
	tab.server.Intercept(tab.decide)
	t.Cleanup(tab.close)
	if err := tab.create(); err != nil {
		t.Fatalf("locktest: %v", err)
	}
	return tab
}

// create makes what EnsureTable would.
func (t *Table) create() error {
	api := t.server.API()
	_, err := api.CreateTable(t.ctx, &dynamodb.CreateTableInput{
		TableName:            &t.opt.TableName,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &t.layout.Partition, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &t.layout.Partition, KeyType: types.KeyTypeHash}},
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	if err != nil {
		return err
	}
	_, err = api.UpdateTimeToLive(t.ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &t.opt.TableName,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(lockattr.TTL), Enabled: aws.Bool(true)},
	})
	return err
}

// closePatience is how long a client may take to close, in the table's time.
const closePatience = time.Minute

func (t *Table) close() {
	t.Heal()
	t.mu.Lock()
	clients := t.clients
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	for _, c := range clients {
		_ = c.Close(ctx) // a release that is refused is the test's affair
	}
	if ctx.Err() != nil {
		t.t.Errorf("locktest: the clients have not closed within %s", closePatience)
	}
	t.stop()
	t.work.Wait()
	t.server.Close()
}

// Name returns the table's name, for lockclient.New and transactions.
func (t *Table) Name() string { return t.opt.TableName }

// DynamoDB returns an SDK client of the server that has the table, for what a test does
// besides: other tables, transactions with a HeldCheck. Its requests meet no faults and are
// not counted; its writes to locks wake contenders.
func (t *Table) DynamoDB() *dynamodb.Client {
	return t.server.Client(func(o *dynamodb.Options) { o.HTTPClient = &transport{t: t} })
}

// Client returns a client like another process's: it shares nothing with the others but the
// table. Every change of a lock wakes its contenders at once, so they neither poll nor wait
// for a stream; Polling makes them poll. It is closed at the test's end.
//
// Options are the client's own, but for Schema: the table's only key is the default one.
// With KeyPrefix, the names in this package's methods are those with the prefix.
func (t *Table) Client(optFns ...func(*lockclient.Options)) *lockclient.Client {
	t.t.Helper()
	db := t.server.Client(func(o *dynamodb.Options) { o.HTTPClient = &transport{t: t, client: true} })
	var c *lockclient.Client
	c, err := lockclient.New(db, t.opt.TableName, func(o *lockclient.Options) {
		own := &notifier{t: t}
		o.Notifier = own
		for _, fn := range optFns {
			fn(o)
		}
		own.prefix = o.KeyPrefix
		o.Observer = t.watchWaits(o.Observer, o.KeyPrefix, &c)
	})
	if err != nil {
		t.t.Fatalf("locktest: %v", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients = append(t.clients, c)
	return c
}

// Polling makes a client poll the table, as without a stream: table.Client(locktest.Polling).
func Polling(o *lockclient.Options) { o.Notifier = nil }
