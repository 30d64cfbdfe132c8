package streamwatcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// TableAPI is what the watcher needs of DynamoDB; *dynamodb.Client has it.
type TableAPI interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// StreamsAPI is what the watcher needs of DynamoDB Streams; *dynamodbstreams.Client
// has it. The watcher switches off the client's own retries for its calls.
type StreamsAPI interface {
	DescribeStream(context.Context, *dynamodbstreams.DescribeStreamInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error)
	GetShardIterator(context.Context, *dynamodbstreams.GetShardIteratorInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error)
	GetRecords(context.Context, *dynamodbstreams.GetRecordsInput, ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error)
}

// Watcher reads the stream of one table and tells waiters of changes to their locks.
// It implements lockevent.Notifier and is safe for concurrent use. A process needs one
// for each table, shared by all its clients.
type Watcher struct {
	api      service
	table    string
	region   string
	opt      Options
	layout   lockitem.Layout
	log      *slog.Logger
	hub      hub
	counters counters
	server   serverClock
	stream   streamCache
	seen     observations

	// What this server turned out not to have.
	noTimestamp   atomic.Bool
	noChildFilter atomic.Bool

	root    context.Context // ends with Close
	stop    context.CancelFunc
	running int           // reader goroutines; guarded by the hub's mutex
	ended   chan struct{} // closed when Close was called and the last reader has ended

	drift     func() time.Duration // wall clock less monotonic clock, since New
	chanceFor func(goroutine string) chance
	handOver  func(*worker, page) // worker.handOver, but for tests of the tests
}

var (
	_ lockevent.Notifier     = (*Watcher)(nil)
	_ lockevent.Observations = (*Watcher)(nil)
)

// New returns a watcher of the stream of table. It sends nothing: the first Watch
// starts the reader. The error names every broken setting.
func New(tables TableAPI, streams StreamsAPI, table string, optFns ...func(*Options)) (*Watcher, error) {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	opt.setDefaults()
	err := opt.validate()
	if tables == nil || streams == nil {
		err = errors.Join(errors.New("a client is nil"), err)
	}
	if table == "" {
		err = errors.Join(errors.New("the table's name is empty"), err)
	}
	if err != nil {
		return nil, fmt.Errorf("streamwatcher: %w", err)
	}
	w := &Watcher{
		table: table, region: regionOf(streams), opt: opt, layout: opt.layout(), log: opt.Logger,
		ended: make(chan struct{}), drift: clockDrift(), chanceFor: anyChance, handOver: (*worker).handOver,
	}
	w.api = service{w: w, tables: tables, streams: streams, dated: serverTime}
	w.hub.names = make(map[string][]*watch)
	w.hub.subs = make(map[string]map[*Subscription]bool)
	w.seen.limit = max(0, opt.Observations)
	w.hub.level.changed = make(chan struct{})
	w.counters.s.Requests = make(map[string]uint64)
	w.counters.s.Gaps = make(map[Cause]uint64)
	w.root, w.stop = context.WithCancel(context.Background())
	return w, nil
}

// regionOf asks an SDK client for its Region, for error texts only.
func regionOf(streams StreamsAPI) string {
	if c, ok := streams.(interface {
		Options() dynamodbstreams.Options
	}); ok {
		return c.Options().Region
	}
	return ""
}

// Watch implements lockevent.Notifier. The first watch starts the reader; a watch that
// begins while the reader is live receives no resync. After Close it returns a watch
// that never receives anything.
func (w *Watcher) Watch(name string) lockevent.Watch {
	h := &w.hub
	wt := &watch{hub: h, name: name, c: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.level.state == Closed {
		wt.stopped = true
		return wt
	}
	h.add(wt)
	w.demanded()
	return wt
}

// demanded starts the reader, or makes it hurry, because somebody new waits. The hub's
// mutex is held.
func (w *Watcher) demanded() {
	h := &w.hub
	quiet := time.Since(h.lastUseful)
	h.lastUseful = time.Now()
	switch {
	case h.reader == nil:
		w.startReader()
	case quiet >= slideFirst:
		h.reader.hurry()
	}
}

// Observed implements lockevent.Observations: it remembers the locks that changed last
// while the reader ran, as many as Options.Observations says.
func (w *Watcher) Observed(name string) (lockevent.Change, bool) { return w.seen.get(name) }

// notify calls the observer. What panics there is not the others' fault.
func (w *Watcher) notify(f func(*Observer)) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("an observer has panicked", "table", w.table, "panic", p)
		}
	}()
	f(&w.opt.Observer)
}

// Ready implements lockevent.Notifier. It returns nil while every shard of the stream
// is read. Its errors are a *StreamError (which is lockevent.ErrDegraded) that says what
// to enable or grant, lockevent.ErrClosed, or the context's error. A watch whose call
// was blocked when the reader became live receives no resync for that: the call returns
// nil, also when its context ends at that moment.
func (w *Watcher) Ready(ctx context.Context, watched lockevent.Watch) error {
	own, _ := watched.(*watch)
	return w.hub.ready(ctx, own)
}

// Stats returns the counts so far and the present state.
func (w *Watcher) Stats() Stats {
	s := w.counters.snapshot()
	h := &w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s.State, s.Err, s.Generation = h.level.state, h.level.err, h.level.generation
	s.Watches, s.Names, s.Subscriptions = h.watches, len(h.names), h.subscriptions
	return s
}

// Close ends reading, tells every watch to look at the table, and waits for the
// watcher's goroutines until ctx ends, whose error it then returns. It is safe to call
// twice and before the first Watch.
func (w *Watcher) Close(ctx context.Context) error {
	from, first := w.shut()
	if first {
		w.notify(func(o *Observer) {
			if o.State != nil {
				o.State(from, Closed, nil)
			}
		})
	}
	select {
	case <-w.ended:
		return nil
	default:
	}
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("streamwatcher: close: a call to the service has not ended: %w", ctx.Err())
	}
}

// shut makes the state Closed and returns the one before.
func (w *Watcher) shut() (from State, first bool) {
	h := &w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.level.state == Closed {
		return Closed, false
	}
	from = h.level.state
	for _, subs := range h.subs {
		for s := range subs {
			s.end()
		}
	}
	h.set(Closed, nil)
	h.tellAll()
	h.reader = nil
	w.stop()
	if w.running == 0 {
		close(w.ended)
	}
	return from, true
}

// startReader starts a reader. The hub's mutex is held.
func (w *Watcher) startReader() {
	r := newReader(w)
	w.running++
	w.hub.reader = r
	w.hub.level.generation++
	r.generation = w.hub.level.generation
	r.name = fmt.Sprintf("reader %d", r.generation)
	r.chance = w.chanceFor(r.name)
	w.hub.set(Resolving, nil)
	go func() {
		defer w.readerEnded()
		r.run()
	}()
}

func (w *Watcher) readerEnded() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if w.running--; w.running == 0 && w.hub.level.state == Closed {
		close(w.ended)
	}
}

// clockDrift returns a function that tells how far the wall clock has moved against the
// monotonic clock, which stands still while a machine sleeps.
func clockDrift() func() time.Duration {
	start := time.Now()
	wall := start.Round(0)
	return func() time.Duration {
		now := time.Now()
		return now.Round(0).Sub(wall) - now.Sub(start)
	}
}
