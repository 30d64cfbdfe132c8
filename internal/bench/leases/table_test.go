package leases

import (
	"context"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/lockevent"
)

const tableName = "locks"

// table is an in-memory table whose changes wake the waiters of all its clients at once,
// as a stream without any delay would.
type table struct {
	*fakedynamo.API
	server *fakedynamo.Server

	mu      sync.Mutex
	watches map[string]map[*watch]struct{}
	traffic traffic
}

// traffic counts requests.
type traffic struct{ Requests, Reads, Writes, FailedWrites int }

func newTable(t *testing.T, optFns ...func(*fakedynamo.Options)) *table {
	t.Helper()
	server := fakedynamo.New(optFns...)
	tb := &table{API: server.API(), server: server, watches: map[string]map[*watch]struct{}{}}
	_, err := tb.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(tableName), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(lockattr.Key), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(lockattr.Key), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

func (tb *table) client(t *testing.T, optFns ...func(*lockclient.Options)) *lockclient.Client {
	t.Helper()
	c, err := lockclient.New(tb, tableName, append([]func(*lockclient.Options){func(o *lockclient.Options) { o.Notifier = tb }}, optFns...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// counted returns the traffic since the last call.
func (tb *table) counted() traffic {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	defer func() { tb.traffic = traffic{} }()
	return tb.traffic
}

func (tb *table) GetItem(ctx context.Context, in *dynamodb.GetItemInput, fns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	tb.mu.Lock()
	tb.traffic.Requests++
	tb.traffic.Reads++
	tb.mu.Unlock()
	return tb.API.GetItem(ctx, in, fns...)
}

func (tb *table) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, fns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := tb.API.UpdateItem(ctx, in, fns...)
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.traffic.Requests++
	tb.traffic.Writes++
	if err != nil {
		tb.traffic.FailedWrites++
		return out, err
	}
	name, _ := lockitem.Layout{Partition: lockattr.Key}.Name(in.Key)
	if len(tb.watches[name]) == 0 {
		return out, nil
	}
	it, err := lockitem.Decode(out.Attributes)
	if err != nil {
		return out, nil
	}
	ch := lockevent.Change{Name: name, Kind: lockevent.Renewed, RVN: it.RVN, Token: it.Token, Lease: it.Lease, Held: !it.Released}
	if it.Released {
		ch.Kind = lockevent.Released
	}
	for w := range tb.watches[name] {
		w.put(ch)
	}
	return out, nil
}

// Watch implements lockevent.Notifier.
func (tb *table) Watch(name string) lockevent.Watch {
	w := &watch{tb: tb, name: name, c: make(chan struct{}, 1)}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.watches[name] == nil {
		tb.watches[name] = map[*watch]struct{}{}
	}
	tb.watches[name][w] = struct{}{}
	return w
}

// Ready implements lockevent.Notifier: no change is ever missed.
func (tb *table) Ready(context.Context, lockevent.Watch) error { return nil }

// watch is one waiter's mailbox.
type watch struct {
	tb   *table
	name string
	c    chan struct{}

	mu     sync.Mutex
	change lockevent.Change
	full   bool
}

func (w *watch) put(ch lockevent.Change) {
	w.mu.Lock()
	w.change, w.full = ch, true
	w.mu.Unlock()
	select {
	case w.c <- struct{}{}:
	default:
	}
}

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) Latest() (lockevent.Change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	full := w.full
	w.full = false
	return w.change, full
}

func (w *watch) Stop() {
	w.tb.mu.Lock()
	defer w.tb.mu.Unlock()
	delete(w.tb.watches[w.name], w)
}
