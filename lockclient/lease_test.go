package lockclient

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

func TestLeaseRenewsItselfAndKeepsOthersOut(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		first := w.item("orders").RVN
		time.Sleep(50 * time.Second) // five leases
		if p.ended() || !l.Valid() || l.Err() != nil {
			t.Fatalf("waiter ended: %v, lease %v", p.ended(), l.Err())
		}
		it := w.item("orders")
		if it.RVN == first || it.Token != l.FencingToken() {
			t.Errorf("%+v", it)
		}
		w.release(l)
		p.mustHold(t)
	})
}

// Cases: C1, C3, C4, C5
//
// The network is cut: the holder is warned, then told with the
// reason, before anyone can take the lock.
func TestCutNetworkEndsTheContextBeforeTheTakeover(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		var warned atomic.Int64
		start := time.Now()
		l := w.acquire(a, "orders", func(o *AcquireOptions) {
			o.ExpiringBefore = time.Second
			o.OnExpiring = func(l *Lease) { warned.Add(1) }
		})
		p := w.goAcquire(w.ctx, b, "orders")
		crash(a)
		<-l.Done()
		ended := time.Since(start)
		if ended < 9*time.Second || ended > 9510*time.Millisecond { // the first look takes 8 ms
			t.Errorf("context ended after %v, want 95 %% of the 10s lease", ended)
		}
		if l.Valid() || l.Remaining() != 0 {
			t.Error("valid after its end")
		}
		var lost *LostError
		if !errors.As(context.Cause(l.Context()), &lost) || lost.Reason != Expired || lost.Token != l.FencingToken() || lost.Last == nil {
			t.Errorf("cause %v", context.Cause(l.Context()))
		}
		wantErr(t, l.Release(w.ctx), ErrLost)
		wantErr(t, l.Renew(w.ctx, nil), ErrLost)
		p.mustHold(t)
		if took := p.at.Sub(start); took < 10*time.Second {
			t.Errorf("takeover after %v, before the lease of 10s had passed", took)
		}
		if n := warned.Load(); n != 1 {
			t.Errorf("warned %d times", n)
		}
	})
}

// Cases: B8
//
// Some failures within the window, then a success: nothing is lost.
func TestRenewalsSurviveFailuresWithinTheWindow(t *testing.T) {
	for name, f := range map[string]fakedynamo.Fault{
		"dropped request":  {DropRequest: true},
		"dropped response": {DropResponse: true},
		"reset":            {Reset: true},
		"throttled":        {Error: &fakedynamo.APIError{Code: "ThrottlingException"}},
		"conflict":         {TransactionConflict: true},
		"500 unapplied":    {Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}},
		"500 applied":      {Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}, AfterApply: true},
		"truncated":        {TruncateBody: true},
		"bad credentials":  {Error: &fakedynamo.APIError{Code: "ExpiredTokenException", Status: 400}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b := w.client(), w.client()
				l := w.acquire(a, "orders")
				w.fault("UpdateItem", 2, f)
				p := w.goAcquire(w.ctx, b, "orders") // reads only
				time.Sleep(time.Minute)
				if !l.Valid() || l.Err() != nil || p.ended() {
					t.Fatalf("lease %v, waiter ended %v", l.Err(), p.ended())
				}
				w.release(l)
				p.mustHold(t)
			})
		})
	}
}

// Cases: C2
//
// A machine that slept past the lease: the boot-time clock ran on.
func TestSleepPastTheLeaseEndsIt(t *testing.T) {
	for _, tc := range []struct {
		name string
		jump func(*skewedClock)
		want Reason
	}{
		{"suspended", func(c *skewedClock) { c.boot.Add(int64(time.Minute)); c.wall.Add(int64(time.Minute)) }, Expired},
		{"wall clock set forward", func(c *skewedClock) { c.wall.Add(int64(time.Hour)) }, Clock},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				clock := &skewedClock{}
				a := w.client(func(o *Options) { o.clock = clock })
				l, quiet := w.acquire(a, "orders"), w.acquire(a, "mails")
				time.Sleep(time.Second)
				tc.jump(clock)
				if l.Valid() {
					t.Error("valid at once after the jump")
				}
				var lost *LostError
				if !errors.As(l.Err(), &lost) || lost.Reason != tc.want {
					t.Errorf("%v, want reason %q", l.Err(), tc.want)
				}
				// The other lease, which nobody asks, learns of it by the clock watch.
				start := time.Now()
				<-quiet.Done()
				if took := time.Since(start); took > time.Second {
					t.Errorf("noticed after %v", took)
				}
			})
		})
	}
}

// Cases: E1, E2
//
// Wall clocks that are wrong, or set back, change nothing.
func TestWallClocksDoNotMatter(t *testing.T) {
	for name, off := range map[string]time.Duration{"hour ahead": time.Hour, "hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				clock := &skewedClock{}
				clock.wall.Add(int64(off))
				a, b := w.client(), w.client(func(o *Options) { o.clock = clock })
				l := w.acquire(a, "orders")
				p := w.goAcquire(w.ctx, b, "orders")
				time.Sleep(30 * time.Second)
				if p.ended() {
					t.Fatal("stole a live lease")
				}
				crash(a)
				<-l.Done()
				p.mustHold(t)
				if p.lease.FencingToken() <= l.FencingToken() {
					t.Errorf("token %d after %d", p.lease.FencingToken(), l.FencingToken())
				}
				clock.wall.Add(int64(-time.Minute)) // set back while it holds
				time.Sleep(30 * time.Second)
				if !p.lease.Valid() {
					t.Errorf("a backward step cost the lease: %v", p.lease.Err())
				}
				crash(b)
				start := time.Now()
				<-p.lease.Done()
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("a backward step lengthened the lease to %v", took)
				}
			})
		})
	}
}

// Cases: E4
//
// A slow success counts from before it was sent.
func TestLeaseCountsFromBeforeTheSend(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		w.release(w.acquire(a, "warm"))
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			return fakedynamo.Fault{DelayResponse: 500 * time.Millisecond}
		})
		start := time.Now()
		l := w.acquire(a, "orders")
		got := time.Now()
		crash(a)
		p := w.goAcquire(w.ctx, b, "orders")
		<-l.Done()
		holderEnd := time.Now()
		if holderEnd.Sub(start) > 9500*time.Millisecond {
			t.Errorf("the holder trusted %v of a lease of 10s from the send", holderEnd.Sub(start))
		}
		if got.Sub(start) < 500*time.Millisecond {
			t.Error("the answer was not late: the test shows nothing")
		}
		p.mustHold(t)
		if p.at.Before(holderEnd) {
			t.Error("taken over before the holder ended")
		}
	})
}

// An acquire whose answer comes after its own lease is no lease, and leaves no lock.
func TestAcquireSlowerThanItsLeaseIsFreed(t *testing.T) {
	bubble(t, func(w *world) {
		clock := &skewedClock{}
		a := w.client(func(o *Options) { o.clock = clock })
		w.release(w.acquire(a, "warm"))
		var once atomic.Bool
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			if r.Op == "UpdateItem" && once.CompareAndSwap(false, true) {
				time.AfterFunc(50*time.Millisecond, func() { clock.boot.Add(int64(time.Minute)) }) // suspended on the wire
				return fakedynamo.Fault{DelayResponse: 100 * time.Millisecond}
			}
			return fakedynamo.Fault{}
		})
		l := w.acquire(a, "orders")
		if !l.Valid() {
			t.Errorf("a dead lease was returned: %v", l.Err())
		}
	})
}

func TestManualRenewWritesDataAndNeverOverlapsTheAutomaticOne(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		l := w.acquire(a, "orders", func(o *AcquireOptions) { o.Data = []byte("one") })
		if got := string(l.Data()); got != "one" {
			t.Errorf("data %q", got)
		}
		var inFlight, most atomic.Int64
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			most.Store(max(most.Load(), inFlight.Add(1)))
			time.AfterFunc(20*time.Millisecond, func() { inFlight.Add(-1) })
			return fakedynamo.Fault{DelayRequest: 20 * time.Millisecond}
		})
		for range 40 {
			if err := l.Renew(w.ctx, []byte("two")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if got := string(l.Data()); got != "two" || string(w.item("orders").Data) != "two" {
			t.Errorf("data %q, in the table %q", got, w.item("orders").Data)
		}
		if most.Load() != 1 {
			t.Errorf("%d renewals at a time", most.Load())
		}
		wantErr(t, l.Renew(w.ctx, make([]byte, DefaultMaxData+1)), ErrInvalidOption)
		w.release(l)
		if got := string(w.acquire(a, "orders").Data()); got != "two" {
			t.Errorf("the next holder finds %q", got)
		}
	})
}

// Cases: B1, B3
//
// A release while a renewal hangs on the wire.
func TestReleaseWhileARenewalHangs(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		l := w.acquire(a, "orders")
		w.fault("UpdateItem", 1, fakedynamo.Fault{DropResponse: true})
		time.Sleep(3500 * time.Millisecond) // the renewal was applied, its answer is lost
		w.release(l)
		if it := w.item("orders"); !it.Released {
			t.Errorf("%+v", it)
		}
		n := w.server.Requests().Total()
		time.Sleep(time.Minute)
		if got := w.server.Requests().Total(); got != n {
			t.Errorf("%d requests after the release", got-n)
		}
		if len(a.leases) != 0 || a.ticks != nil {
			t.Error("something is left of the lease")
		}
	})
}

func TestLossIsToldWithItsReason(t *testing.T) {
	for _, tc := range []struct {
		name string
		act  func(w *world, l *Lease)
		want Reason
		by   string
	}{
		{"deleted", func(w *world, l *Lease) { _ = w.server.DeleteRaw(testTable, l.c.layout.Key("orders")) }, Deleted, ""},
		{"reaped", func(w *world, l *Lease) { w.steal(l, "", true) }, Reaped, ""},
		{"taken over", func(w *world, l *Lease) { w.steal(l, "thief#1", false) }, TakenOver, "thief"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				var told atomic.Int64
				a := w.client(func(o *Options) { o.Observer.Lost = func(*LostError) { told.Add(1) } })
				l := w.acquire(a, "orders")
				tc.act(w, l)
				start := time.Now()
				<-l.Done()
				if took := time.Since(start); took > 4*time.Second {
					t.Errorf("learned of it after %v, want a renew interval", took)
				}
				var lost *LostError
				if !errors.As(l.Err(), &lost) || lost.Reason != tc.want || lost.By != tc.by {
					t.Errorf("%+v", l.Err())
				}
				synctest.Wait()
				if told.Load() != 1 {
					t.Errorf("told %d times", told.Load())
				}
				n := w.server.Requests().Total()
				wantErr(t, l.Release(w.ctx), ErrLost)
				if w.server.Requests().Total() != n {
					t.Error("released a lost lease")
				}
			})
		})
	}
}

// Cases: A7, H1
func TestHoldOutlivesTheContextOfAcquire(t *testing.T) {
	bubble(t, func(w *world) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(w.ctx, key{}, "trace"))
		l, err := w.client().Acquire(ctx, "orders")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(30 * time.Second)
		if !l.Valid() || l.Context().Err() != nil {
			t.Errorf("%v", l.Err())
		}
		if l.Context().Value(key{}) != "trace" {
			t.Error("the context's values are gone")
		}
		if got, ok := LeaseFromContext(l.Context()); !ok || got != l {
			t.Error("the lease is not in its context")
		}
		if err := l.Release(ctx); err != nil { // an ended context still releases
			t.Error(err)
		}
		if !w.item("orders").Released {
			t.Error("not released")
		}
	})
}
