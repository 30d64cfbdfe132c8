package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/limiterproxy"
	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/lockevent"
	"github.com/lockstream/lockstream/streamwatcher"
)

// behindLimits puts the service's limits between a bed's watchers and its emulator.
func (b *bed) behindLimits(visibility time.Duration) func() *streamwatcher.Watcher {
	b.t.Helper()
	p, err := limiterproxy.Start(b.e.Endpoint(), b.streams(), func(o *limiterproxy.Options) { o.Visibility = visibility })
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.t.Error(err)
		}
	})
	streams, err := b.e.StreamsClient(b.t.Context(), func(o *dynamodbstreams.Options) { o.BaseEndpoint = aws.String(p.Endpoint()) })
	if err != nil {
		b.t.Fatal(err)
	}
	return func() *streamwatcher.Watcher {
		w, err := streamwatcher.New(b.db(), streams, b.table)
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { closeSoon(b.t, w.Close) })
		return w
	}
}

// Three processes read one shard that allows five reads a second, and a change shows only
// after a while: all get the lock in turn, by events.
func TestWaitersBehindTheServicesLimits(t *testing.T) {
	b := newBed(t)
	newWatcher := b.behindLimits(200 * time.Millisecond)
	holder := b.client()
	l := hold(t, holder, "orders")
	took := make(chan time.Duration, 3)
	for range cap(took) {
		w := newWatcher()
		c := b.client(func(o *lockclient.Options) { o.Notifier = w })
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			began := time.Now()
			next, err := c.Acquire(ctx, "orders")
			if err != nil {
				t.Error(err)
			} else if err := next.Release(ctx); err != nil {
				t.Error(err)
			}
			took <- time.Since(began)
		}()
	}
	time.Sleep(time.Second)
	release(t, l)
	for range cap(took) {
		if d := <-took; d > 20*time.Second {
			t.Errorf("a waiter took %v", d)
		}
	}
}

// On the emulator a subscriber sees the kinds of a lock's changes in their order, and the
// watcher remembers the last one.
func TestSubscribeOnTheEmulator(t *testing.T) {
	b := newBed(t)
	w := b.watcher()
	sub := w.Subscribe(func(o *streamwatcher.SubscribeOptions) { o.Prefix, o.Renewals = "orders", true })
	defer sub.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	next := func() lockevent.Change {
		t.Helper()
		c, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := next(); c.Kind != lockevent.Resync {
		t.Errorf("begins with %+v", c)
	}
	c := b.client()
	l := hold(t, c, "orders")
	if err := l.Renew(ctx, nil); err != nil {
		t.Fatal(err)
	}
	release(t, l)
	var got []lockevent.Kind
	var last lockevent.Change
	for len(got) < 3 {
		last = next()
		got = append(got, last.Kind)
	}
	if want := "[acquired renewed released]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if seen, ok := w.Observed("orders"); !ok || seen.RVN != last.RVN || seen.Token != l.FencingToken() || seen.Held || seen.SeenAt != last.SeenAt {
		t.Errorf("observed %+v, %v; last event %+v", seen, ok, last)
	}
}
