package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/emulator"
	"github.com/lockstream/lockstream/internal/emulator/emulatortest"
	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/streamwatcher"
)

// pollInterval is what the tests' watchers use: faster than the default, so that a
// minute's patience is not needed.
const pollInterval = 50 * time.Millisecond

// bed is one emulator with one lock table.
type bed struct {
	t     *testing.T
	e     *emulator.Emulator
	table string
}

var tables atomic.Int64

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, e: emulatortest.ForTest(t), table: fmt.Sprintf("locks-%d-%d", time.Now().UnixNano(), tables.Add(1))}
	c := b.client()
	report, err := c.EnsureTable(t.Context())
	if err != nil || !report.Created || report.StreamARN == "" || len(report.Missing) > 0 {
		t.Fatalf("EnsureTable: %+v, %v", report, err)
	}
	return b
}

func (b *bed) db() *dynamodb.Client {
	b.t.Helper()
	db, err := b.e.Client(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return db
}

func (b *bed) streams() *dynamodbstreams.Client {
	b.t.Helper()
	s, err := b.e.StreamsClient(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// client is closed at the test's end.
func (b *bed) client(optFns ...func(*lockclient.Options)) *lockclient.Client {
	b.t.Helper()
	c, err := lockclient.New(b.db(), b.table, optFns...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { closeSoon(b.t, c.Close) })
	return c
}

// watcher is closed at the test's end, before the clients are not: they go on by polling.
func (b *bed) watcher() *streamwatcher.Watcher {
	b.t.Helper()
	w, err := streamwatcher.New(b.db(), b.streams(), b.table, func(o *streamwatcher.Options) { o.PollInterval = pollInterval })
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { closeSoon(b.t, w.Close) })
	return w
}

func closeSoon(t *testing.T, closer func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := closer(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func hold(t *testing.T, c *lockclient.Client, name string, optFns ...func(*lockclient.AcquireOptions)) *lockclient.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := c.Acquire(ctx, name, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *lockclient.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// journal collects what a client's observer tells.
type journal struct {
	mu       sync.Mutex
	requests []lockclient.RequestEvent
	wakes    []lockclient.Wake
	woken    []lockclient.Wake // why a wait ended in a look
	waiting  chan struct{}     // one for each wait that begins
}

func (j *journal) hook(o *lockclient.Options) {
	j.waiting = make(chan struct{}, 1024)
	o.Observer.Waiting = func(string) { j.waiting <- struct{}{} }
	o.Observer.Woke = func(_ string, by lockclient.Wake) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.woken = append(j.woken, by)
	}
	o.Observer.Request = func(e lockclient.RequestEvent) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.requests = append(j.requests, e)
	}
	o.Observer.Acquired = func(e lockclient.AcquiredEvent) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.wakes = append(j.wakes, e.Wake)
	}
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests, j.wakes, j.woken = nil, nil, nil
}

// drain forgets what began to wait before.
func (j *journal) drain() {
	for len(j.waiting) > 0 {
		<-j.waiting
	}
}

func (j *journal) all() ([]lockclient.RequestEvent, []lockclient.Wake) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]lockclient.RequestEvent(nil), j.requests...), append([]lockclient.Wake(nil), j.wakes...)
}
