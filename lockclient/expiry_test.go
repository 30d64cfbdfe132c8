package lockclient

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
)

// Cases: D9, I4
//
// The attribute ttl decides nothing, whatever it says; the lease does, on a table without TTL.
func TestTakeoverHeedsTheLeaseAndNotTheTTL(t *testing.T) {
	for name, ttl := range map[string]time.Duration{"long past": -time.Hour, "far ahead": 24 * time.Hour, "none": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b := w.client(), w.client()
				l := w.acquire(a, "orders")
				crash(a)
				m := w.server.Item(testTable, a.layout.Key("orders"))
				delete(m, lockattr.TTL)
				if ttl != 0 {
					m[lockattr.TTL] = &types.AttributeValueMemberN{Value: strconv.FormatInt(w.server.Now().Add(ttl).Unix(), 10)}
				}
				if err := w.server.PutRaw(testTable, m); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				got := w.acquire(b, "orders")
				if took := time.Since(start); took < l.lease || took > l.lease*21/20+1200*time.Millisecond {
					t.Errorf("taken over after %v", took)
				}
				w.release(got)
			})
		})
	}
}

// Cases: D6
func TestShortLeaseHoldsForLongWork(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(15 * time.Minute)
		if !l.Valid() || p.ended() {
			t.Fatalf("lease %v, waiter ended %v", l.Err(), p.ended())
		}
		crash(a) // and yet recovery takes a lease, not the longest work
		start := time.Now()
		p.mustHold(t)
		if took := p.at.Sub(start); took > 11700*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
	})
}

// Cases: D10
func TestHolderCutOffWithoutAWord(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		time.Sleep(17 * time.Second)
		crash(a)
		cut := time.Now()
		p := w.goAcquire(w.ctx, b, "orders") // comes after the cut: it knows nothing
		<-l.Done()
		ended := time.Since(cut)
		p.mustHold(t)
		if took := p.at.Sub(cut); took < ended || took > 11700*time.Millisecond {
			t.Errorf("holder ended after %v, taken over after %v", ended, took)
		}
	})
}

// Cases: D12
func TestContendersLookAtTheLeasesEndWithoutAnyEvent(t *testing.T) {
	bubble(t, func(w *world) {
		var k waker
		a, b := w.client(), w.client(w.watching, k.hook, func(o *Options) { o.Fallback = time.Hour })
		w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		w.events.mute.Store(true)
		crash(a)
		start := time.Now()
		p.mustHold(t)
		if took := p.at.Sub(start); took > 10600*time.Millisecond || k.by[WakeExpiry] != 1 {
			t.Errorf("taken over after %v, woken by %v", took, k.by)
		}
	})
}

// Cases: D4
func TestWaiterTriesUntilItsDeadlineExactly(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		l := w.acquire(a, "orders")
		start := time.Now()
		waits := func(d time.Duration) func(*AcquireOptions) {
			return func(o *AcquireOptions) { o.Wait = d }
		}
		var all []*pending
		for _, d := range []time.Duration{50 * time.Millisecond, 9 * time.Second, 10*time.Second + 1, 33 * time.Second} {
			all = append(all, w.goAcquire(w.ctx, b, "orders", waits(d)))
			p := all[len(all)-1]
			<-p.done
			wantErr(t, p.err, ErrHeld, ErrWaitElapsed)
			if took := p.at.Sub(start); took != d {
				t.Errorf("a Wait of %v took %v", d, took)
			}
			start = time.Now()
		}
		// Freed in the last moment, it is still got.
		p := w.goAcquire(w.ctx, b, "orders", waits(40*time.Second))
		synctest.Wait()
		forever := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(40*time.Second - 20*time.Millisecond)
		w.release(l)
		l = p.mustHold(t)
		time.Sleep(20 * time.Minute)
		if forever.ended() {
			t.Errorf("a wait without an end ended: %v", forever.err)
		}
		w.release(l)
		forever.mustHold(t)
	})
}

// candidates lead one after the other until ctx ends; terms counts the changes.
func (w *world) candidates(ctx context.Context, n int, terms *atomic.Int64) *sync.WaitGroup {
	var all sync.WaitGroup
	for range n {
		c := w.client(w.watching)
		all.Go(func() {
			for {
				l, err := c.Acquire(ctx, "leader")
				if err != nil {
					return
				}
				terms.Add(1)
				select {
				case <-l.Done():
				case <-ctx.Done():
				}
			}
		})
	}
	return &all
}

// Cases: D11
func TestLeadershipIsStable(t *testing.T) {
	bubble(t, func(w *world) {
		first := w.acquire(w.client(), "leader")
		ctx, cancel := context.WithCancel(w.ctx)
		var terms atomic.Int64
		all := w.candidates(ctx, 3, &terms)
		time.Sleep(5 * time.Second)
		w.release(first) // steps down
		time.Sleep(time.Minute)
		if terms.Load() != 1 {
			t.Errorf("%d changes of leadership in a minute", terms.Load())
		}
		if err := w.server.DeleteRaw(testTable, first.c.layout.Key("leader")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := terms.Load(); n > 2 || w.item("leader") == nil {
			t.Errorf("%d changes after the item was deleted", n-1)
		}
		cancel()
		all.Wait()
	})
}

// Cases: I5, I6
func TestTTLNeverEndsAHoldAndTokensRiseOverDeletion(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.tableClient("ttl", func(o *Options) { o.Retention = MinRetention })
		if _, err := a.EnsureTable(w.ctx); err != nil {
			t.Fatal(err)
		}
		item := func() map[string]types.AttributeValue { return w.server.Item("ttl", a.layout.Key("orders")) }
		expires := func() time.Duration {
			n, err := strconv.ParseInt(item()[lockattr.TTL].(*types.AttributeValueMemberN).Value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return time.Unix(n, 0).Sub(w.server.Now())
		}
		l := w.acquire(a, "orders")
		for range 180 {
			time.Sleep(time.Minute)
			if _, err := w.server.ExpireTTL("ttl"); err != nil {
				t.Fatal(err)
			}
			if left := expires(); left < MinRetention || left > MinRetention+a.opt.LeaseDuration+2*time.Second {
				t.Fatalf("ttl is %v ahead, with a lease of %v and a retention of %v", left, a.opt.LeaseDuration, MinRetention)
			}
		}
		if !l.Valid() {
			t.Fatalf("%v", l.Err())
		}
		w.release(l)
		time.Sleep(MinRetention - time.Minute)
		if n, _ := w.server.ExpireTTL("ttl"); n != 0 {
			t.Error("deleted before its retention had passed")
		}
		time.Sleep(2 * time.Minute)
		if n, err := w.server.ExpireTTL("ttl"); n != 1 || item() != nil {
			t.Errorf("%d deleted after the retention: %v", n, err)
		}
		if next := w.acquire(a, "orders"); next.FencingToken() <= l.FencingToken() {
			t.Errorf("token %d after %d", next.FencingToken(), l.FencingToken())
		}
		_, err := New(a.db, "ttl", func(o *Options) { o.Retention = 29 * time.Minute })
		wantErr(t, err, ErrInvalidOption)
	})
}

// Cases: O4
//
// Every time that a hand-over depends on can be set.
func TestAllTimesAreOptions(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client(func(o *Options) {
			o.LeaseDuration, o.RenewInterval, o.ReleaseTimeout = 2*time.Second, 200*time.Millisecond, 400*time.Millisecond
		})
		b := w.client(func(o *Options) { o.PollInterval = 50 * time.Millisecond })
		l := w.acquire(a, "orders")
		w.server.Requests().Reset()
		time.Sleep(10 * time.Second)
		if n := w.requests("UpdateItem"); n < 48 || n > 65 {
			t.Errorf("%d renewals in 10 s at 200 ms", n)
		}
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		start := time.Now()
		w.release(l)
		l = p.mustHold(t)
		if took := p.at.Sub(start); took > 100*time.Millisecond {
			t.Errorf("handed over after %v with polls each 50 ms", took)
		}
		w.release(l)
		l = w.acquire(a, "orders")
		p = w.goAcquire(w.ctx, b, "orders")
		crash(a)
		start = time.Now()
		if err := l.Release(w.ctx); err == nil {
			t.Error("released without a network")
		}
		if took := time.Since(start); took != 400*time.Millisecond {
			t.Errorf("a release time-out of 400 ms took %v", took)
		}
		p.mustHold(t)
		if took := p.at.Sub(start); took > 2300*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
	})
}
