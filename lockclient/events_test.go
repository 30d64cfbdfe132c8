package lockclient

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// events is a notifier that a test drives, or that hears of writes from telling.
type events struct {
	delay atomic.Int64 // from the write to its event
	mute  atomic.Bool  // loses events without a word: against the contract, for twins

	mu      sync.Mutex
	ready   error         // what Ready returns; errNotYet blocks
	changed chan struct{} // closed when ready changes
	watches map[*box]struct{}
}

var errNotYet = errors.New("not ready yet")

func newEvents() *events {
	return &events{changed: make(chan struct{}), watches: map[*box]struct{}{}}
}

func (e *events) Watch(name string) lockevent.Watch {
	b := &box{e: e, name: name, c: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watches[b] = struct{}{}
	return b
}

func (e *events) Ready(ctx context.Context, _ lockevent.Watch) error {
	for {
		e.mu.Lock()
		err, changed := e.ready, e.changed
		e.mu.Unlock()
		if !errors.Is(err, errNotYet) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// setReady changes what Ready says, with the resync that the contract asks for.
func (e *events) setReady(err error) {
	e.mu.Lock()
	e.ready = err
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()
	e.tell(lockevent.Change{Kind: lockevent.Resync})
}

// tell delivers a change to the watches of its name; a resync to all.
func (e *events) tell(ch lockevent.Change) {
	if ch.SeenAt.IsZero() { // a lie has its own
		ch.SeenAt = time.Now()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for b := range e.watches {
		if ch.Kind == lockevent.Resync || b.name == ch.Name {
			b.put(ch)
		}
	}
}

func (e *events) watched() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.watches)
}

type box struct {
	e      *events
	name   string
	c      chan struct{}
	mu     sync.Mutex
	change lockevent.Change
	full   bool
}

func (b *box) put(ch lockevent.Change) {
	b.mu.Lock()
	if !b.full || b.change.Kind != lockevent.Resync {
		b.change, b.full = ch, true
	}
	b.mu.Unlock()
	select {
	case b.c <- struct{}{}:
	default:
	}
}

func (b *box) C() <-chan struct{} { return b.c }

func (b *box) Latest() (lockevent.Change, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	full := b.full
	b.full = false
	return b.change, full
}

func (b *box) Stop() {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	delete(b.e.watches, b)
}

// telling is a client of the table whose successful writes the notifier hears of, as
// through a stream. When dead, nothing reaches the table any more.
type telling struct {
	DynamoDBAPI
	events *events
	dead   atomic.Bool
}

// Options is what an SDK client has too, and where error texts take the Region from.
func (d *telling) Options() dynamodb.Options {
	if c, ok := d.DynamoDBAPI.(*dynamodb.Client); ok {
		return c.Options()
	}
	return dynamodb.Options{}
}

func (d *telling) GetItem(ctx context.Context, in *dynamodb.GetItemInput, fns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if d.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.DynamoDBAPI.GetItem(ctx, in, fns...)
}

func (d *telling) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, fns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if d.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	out, err := d.DynamoDBAPI.UpdateItem(ctx, in, fns...)
	if err != nil || d.events.mute.Load() {
		return out, err
	}
	it, derr := lockitem.Decode(out.Attributes)
	name, ok := lockitem.Layout{Partition: lockattr.Key}.Name(in.Key)
	if derr != nil || !ok {
		return out, err
	}
	ch := lockevent.Change{Name: name, Kind: lockevent.Renewed, RVN: it.RVN, Token: it.Token, Lease: it.Lease, Held: !it.Released}
	if it.Released {
		ch.Kind = lockevent.Released
	}
	if delay := time.Duration(d.events.delay.Load()); delay > 0 {
		time.AfterFunc(delay, func() { d.events.tell(ch) })
	} else {
		d.events.tell(ch)
	}
	return out, err
}
