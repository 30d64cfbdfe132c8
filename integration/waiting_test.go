package integration

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/lockevent"
	"github.com/lockstream/lockstream/streamwatcher"
)

// TestReleaseWakesTheWaiterThroughTheStream is the main job in small: the waiter sends
// nothing to the table while the holder renews, and the release's event wakes it.
//
// Cases: J2, O2
func TestReleaseWakesTheWaiterThroughTheStream(t *testing.T) {
	b := newBed(t)
	var j journal
	short := func(o *lockclient.Options) { o.LeaseDuration = time.Second }
	wt := b.watcher()
	a, waiter := b.client(short), b.client(short, j.hook, func(o *lockclient.Options) { o.Notifier = wt })
	var took []time.Duration
	for range 5 {
		l := hold(t, a, "orders")
		j.drain()
		got := make(chan time.Time, 1)
		errs := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			next, err := waiter.Acquire(ctx, "orders")
			got <- time.Now()
			if err == nil {
				err = next.Release(t.Context())
			}
			errs <- err
		}()
		<-j.waiting
		j.reset()
		for range 3 { // three leases' worth of renewals
			if err := l.Renew(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond)
		}
		if requests, _ := j.all(); len(requests) > 0 {
			t.Errorf("the waiter sent %v while the holder renewed, woken by %v; watcher %+v", requests, j.woken, wt.Stats())
		}
		start := time.Now()
		release(t, l)
		took = append(took, (<-got).Sub(start))
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		if _, wakes := j.all(); !slices.Equal(wakes, []lockclient.Wake{lockclient.WakeEvent}) {
			t.Errorf("woken by %v", wakes)
		}
	}
	slices.Sort(took)
	t.Logf("hand-offs through the stream at %v polls: %v", pollInterval, took)
	if median := took[len(took)/2]; median > time.Second {
		t.Errorf("a hand-off took %v: that is a poll, not an event", median)
	}
}

// TestWatcherWithoutAUsableStream: one clear error from Ready, and a client that works on.
func TestWatcherWithoutAUsableStream(t *testing.T) {
	for name, spec := range map[string]*types.StreamSpecification{
		"no stream":  nil,
		"wrong view": {StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.table += "-plain"
			_, err := b.db().CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: &b.table, BillingMode: types.BillingModePayPerRequest, StreamSpecification: spec,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
			})
			if err != nil {
				t.Fatal(err)
			}
			w := b.watcher()
			watch := w.Watch("orders")
			defer watch.Stop()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err = w.Ready(ctx, watch)
			var streamErr *streamwatcher.StreamError
			if !errors.Is(err, lockevent.ErrDegraded) || !errors.As(err, &streamErr) || streamErr.Table != b.table {
				t.Errorf("Ready: %v", err)
			}
			t.Log(err)

			a := b.client()
			waiter := b.client(func(o *lockclient.Options) { o.Notifier = w })
			l := hold(t, a, "orders")
			got := make(chan error, 1)
			go func() {
				_, err := waiter.Acquire(ctx, "orders")
				got <- err
			}()
			time.AfterFunc(300*time.Millisecond, func() { _ = l.Release(context.Background()) })
			if err := <-got; err != nil {
				t.Errorf("the client does not work without a stream: %v", err)
			}
		})
	}
}
