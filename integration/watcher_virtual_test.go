package integration

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/streamwatcher"
)

// town is some processes, each a client with its own watcher, on one simulated service in
// virtual time.
type town struct {
	t      *testing.T
	server *fakedynamo.Server
}

// house is one process.
type house struct {
	*lockclient.Client
	server   *fakedynamo.Server
	watcher  *streamwatcher.Watcher
	cut      atomic.Bool  // its network is
	requests atomic.Int64 // to the table
	waiting  chan struct{}
}

const shortLease = 3 * time.Second

func inTown(t *testing.T, test func(t *testing.T, v *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := &town{t: t, server: fakedynamo.New(func(o *fakedynamo.Options) { o.Latency = 4 * time.Millisecond })}
		v.server.SetClockOffset(30 * 365 * 24 * time.Hour) // a bubble begins in 2000
		defer v.server.Close()
		test(t, v)
	})
}

// Do implements the SDK's HTTPClient: it is the house's wire.
func (h *house) Do(req *http.Request) (*http.Response, error) {
	if h.cut.Load() {
		return nil, errors.New("the wire is cut")
	}
	return h.server.Do(req)
}

// house moves in; the test's end moves it out.
func (v *town) house(optFns ...func(*lockclient.Options)) *house {
	v.t.Helper()
	h := &house{server: v.server, waiting: make(chan struct{}, 1024)}
	api := v.server.API()
	watcher, err := streamwatcher.New(api, api, "locks")
	if err != nil {
		v.t.Fatal(err)
	}
	h.watcher = watcher
	base := func(o *lockclient.Options) {
		o.Notifier, o.LeaseDuration, o.Fallback = watcher, shortLease, time.Hour
		o.Observer.Request = func(lockclient.RequestEvent) { h.requests.Add(1) }
		o.Observer.Waiting = func(string) { h.waiting <- struct{}{} }
	}
	h.Client, err = lockclient.New(v.server.Client(func(o *dynamodb.Options) { o.HTTPClient = h }), "locks", append([]func(*lockclient.Options){base}, optFns...)...)
	if err != nil {
		v.t.Fatal(err)
	}
	if _, err := h.EnsureTable(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() {
		closeSoon(v.t, h.Client.Close)
		closeSoon(v.t, watcher.Close)
	})
	return h
}

// pending is an acquire under way.
type pending struct {
	lease *lockclient.Lease
	err   error
	at    time.Time
	done  chan struct{}
}

// queue begins an acquire and waits until it has looked and waits.
func (h *house) queue(ctx context.Context) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.lease, p.err = h.Acquire(ctx, "orders")
		p.at = time.Now()
	}()
	synctest.Wait()
	return p
}

func (p *pending) get(t *testing.T, within time.Duration) *lockclient.Lease {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("not acquired within %v", within)
	}
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.lease
}

// The head of a process's queue takes the wake-up and gives up in its write; the next one
// has the lock long before any fallback.
//
// Cases: R1
func TestHeadGivesUpAfterItsWakeUp(t *testing.T) {
	for _, delay := range []time.Duration{0, 2 * time.Millisecond, 50 * time.Millisecond} {
		inTown(t, func(t *testing.T, v *town) {
			a, b := v.house(), v.house()
			l := hold(t, a.Client, "orders")
			ctx, cancel := context.WithCancel(t.Context())
			head := b.queue(ctx)
			<-b.waiting
			second := b.queue(t.Context())
			time.Sleep(2 * time.Second)
			woken := make(chan struct{}, 1)
			v.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
				if r.Op != "GetRecords" {
					select {
					case woken <- struct{}{}: // the head's first request after the release
					default:
					}
				}
				return fakedynamo.Fault{}
			})
			release(t, l)
			<-woken // that was the release itself
			<-woken
			time.Sleep(delay)
			cancel()
			<-head.done
			if head.err == nil { // it was quicker
				release(t, head.lease)
			}
			release(t, second.get(t, 2*time.Second))
		})
	}
}

// While a holder renews, whoever waits elsewhere sends nothing, though every renewal comes
// near the end of the lease that it knew. When the holder dies the lock changes hands
// after a lease.
//
// Cases: R9
func TestDeadlineMovesWithRenewals(t *testing.T) {
	inTown(t, func(t *testing.T, v *town) {
		a := v.house()
		var waiters []*house
		var queued []*pending
		l := hold(t, a.Client, "orders")
		for range 5 {
			h := v.house()
			waiters = append(waiters, h)
			queued = append(queued, h.queue(t.Context()))
			<-h.waiting
		}
		time.Sleep(time.Second)
		for _, h := range waiters {
			h.requests.Store(0)
		}
		time.Sleep(20 * shortLease)
		for i, h := range waiters {
			if n := h.requests.Load(); n != 0 {
				t.Errorf("waiter %d sent %d requests while the holder renewed; watcher %+v", i, n, h.watcher.Stats())
			}
		}
		if !l.Valid() {
			t.Fatal("the holder lost its lease")
		}
		dead := time.Now()
		a.cut.Store(true)
		var first atomic.Int64
		var all sync.WaitGroup
		for _, p := range queued {
			all.Go(func() {
				l := p.get(t, time.Minute)
				first.CompareAndSwap(0, int64(p.at.Sub(dead)))
				release(t, l)
			})
		}
		all.Wait()
		if took := time.Duration(first.Load()); took < shortLease/2 || took > 2*shortLease {
			t.Errorf("taken over %v after the holder's death", took)
		}
	})
}

// A hand-over inside one process wakes nobody elsewhere; the release after it does.
//
// Cases: R11
func TestHandOverWakesNobodyElsewhere(t *testing.T) {
	inTown(t, func(t *testing.T, v *town) {
		a, b := v.house(), v.house()
		l := hold(t, a.Client, "orders")
		next := a.queue(t.Context())
		other := b.queue(t.Context())
		<-b.waiting
		time.Sleep(time.Second)
		b.requests.Store(0)
		release(t, l)
		l = next.get(t, 100*time.Millisecond) // passed on inside the process
		time.Sleep(2 * time.Second)
		if n := b.requests.Load(); n != 0 {
			t.Errorf("the other process sent %d requests because of a hand-over", n)
		}
		// The real release wakes the other process, and its own the first one again.
		release(t, l)
		l = other.get(t, 2*time.Second)
		again := a.queue(t.Context())
		<-a.waiting
		release(t, l)
		release(t, again.get(t, 2*time.Second))
	})
}

// Cases: Q5
func TestLeaseOutlivesItsRenewals(t *testing.T) {
	inTown(t, func(t *testing.T, v *town) {
		_, err := lockclient.New(v.server.Client(), "locks", func(o *lockclient.Options) {
			o.LeaseDuration, o.RenewInterval = shortLease, shortLease
		})
		if err == nil {
			t.Error("a renew interval as long as the lease is taken")
		}
		a := v.house()
		l := hold(t, a.Client, "orders")
		v.server.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault {
			return fakedynamo.Fault{Reset: true}
		})
		time.Sleep(2 * shortLease)
		v.server.Intercept(nil)
		if err := l.Renew(t.Context(), nil); err == nil || l.Valid() {
			t.Errorf("a lease that ended is renewed: %v", err)
		}
		if cause := context.Cause(l.Context()); cause == nil {
			t.Error("its context goes on")
		}
	})
}
