package lockclient

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockitem"
)

// Cases: A2, A6
//
// The acquire was applied and its answer is lost, in every way.
func TestAcquireWithALostAnswerHolds(t *testing.T) {
	for name, f := range map[string]fakedynamo.Fault{
		"hangs":     {DropResponse: true},
		"reset":     {AfterApply: true, Reset: true},
		"500":       {AfterApply: true, Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}},
		"truncated": {TruncateBody: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				var recovered, acquired atomic.Int64
				a := w.client(func(o *Options) {
					o.Observer.Recovered = func(op, _ string) { recovered.Add(1) }
					o.Observer.Acquired = func(AcquiredEvent) { acquired.Add(1) }
				})
				w.release(w.acquire(a, "warm"))
				for _, n := range []int{1, 3} {
					recovered.Store(0)
					w.fault("UpdateItem", n, f)
					start := time.Now()
					l := w.acquire(a, "orders")
					it := w.item("orders")
					if it.Owner != l.owner || it.Token != l.token || it.RVN != version(l) || it.Released {
						t.Errorf("the lease %q/%d is not what the table has: %+v", l.owner, l.token, it)
					}
					if recovered.Load() != 1 {
						t.Errorf("recovered %d times", recovered.Load())
					}
					// Counted from the attempt that was applied, not from the one that found out.
					if age := time.Since(start); l.Remaining() > trustOf(l.lease)-age+10*time.Millisecond {
						t.Errorf("%v remain %v after the first attempt", l.Remaining(), age)
					}
					w.server.Intercept(nil)
					w.release(l)
				}
				if acquired.Load() != 3 {
					t.Errorf("%d leases were told of", acquired.Load())
				}
			})
		})
	}
}

// Cases: F4, F2
//
// The context ends at every step of an acquire: no lease, no lock left.
func TestAcquireAbandonedAtEveryStepLeavesNoLock(t *testing.T) {
	for name, f := range map[string]fakedynamo.Fault{
		"before the request":       {DelayRequest: 50 * time.Millisecond},
		"request lost":             {DropRequest: true},
		"answer lost":              {DropResponse: true},
		"answer late":              {DelayResponse: 50 * time.Millisecond},
		"applied late":             {ApplyLate: 100 * time.Millisecond},
		"applied after a minute":   {ApplyLate: time.Minute},
		"applied after 14 minutes": {ApplyLate: 14 * time.Minute},
	} {
		for _, state := range []string{"absent", "released"} {
			t.Run(name+"/"+state, func(t *testing.T) {
				bubble(t, func(w *world) {
					a, b := w.client(), w.client()
					w.release(w.acquire(a, "warm"))
					last := int64(0)
					if state == "released" {
						l := w.acquire(b, "orders")
						last = l.FencingToken()
						w.release(l)
						time.Sleep(2 * time.Second)
					}
					w.fault("UpdateItem", 1, f)
					ctx, cancel := context.WithTimeout(w.ctx, 20*time.Millisecond)
					defer cancel()
					start := time.Now()
					l, err := a.Acquire(ctx, "orders")
					if l != nil || err == nil {
						t.Fatalf("%v, %v", l, err)
					}
					wantErr(t, err, context.DeadlineExceeded)
					if took := time.Since(start); took > 50*time.Millisecond {
						t.Errorf("returned after %v", took)
					}
					time.Sleep(2 * time.Second)
					if it := w.item("orders"); it != nil && !it.Released {
						t.Errorf("a lock was left behind: %+v", it)
					}
					time.Sleep(15 * time.Minute) // whatever comes late has come
					if it := w.item("orders"); it != nil && !it.Released {
						t.Errorf("a late copy took the lock: %+v", it)
					}
					if got := w.acquire(b, "orders"); got.FencingToken() <= last {
						t.Errorf("token %d after %d", got.FencingToken(), last)
					}
				})
			})
		}
	}
}

// A copy of an old acquire that arrives when the lock has been used by others meanwhile.
func TestLateCopyOfAnAcquireTakesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		w.release(w.acquire(a, "warm"))
		w.release(w.acquire(b, "warm"))
		w.fault("UpdateItem", 1, fakedynamo.Fault{ApplyLate: 10 * time.Second})
		l := w.acquire(a, "orders") // by its second attempt
		w.release(l)
		other := w.acquire(b, "orders")
		w.release(other)
		time.Sleep(time.Minute)
		it := w.item("orders")
		if !it.Released || it.Token != other.FencingToken() {
			t.Errorf("the late copy was applied: %+v", it)
		}
	})
}

// Cases: A1
//
// Renewals that were applied but answered with errors, three times running.
func TestRenewalsWithLostAnswersKeepTheLease(t *testing.T) {
	for name, f := range map[string]fakedynamo.Fault{
		"500":   {AfterApply: true, Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}},
		"reset": {AfterApply: true, Reset: true},
		"hangs": {DropResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				var recovered atomic.Int64
				a := w.client(func(o *Options) { o.Observer.Recovered = func(string, string) { recovered.Add(1) } })
				l := w.acquire(a, "orders")
				first := w.item("orders").RVN
				n := 3
				if f.DropResponse {
					n = 1 // each of them takes a quarter of the lease
				}
				w.fault("UpdateItem", n, f)
				time.Sleep(time.Minute)
				if !l.Valid() || l.Err() != nil {
					t.Errorf("%v", l.Err())
				}
				if w.item("orders").RVN == first || recovered.Load() == 0 {
					t.Error("the version did not advance, or nothing was recovered: the test shows nothing")
				}
			})
		})
	}
}

// Release and hand-over whose answers are lost.
func TestGivingBackWithALostAnswer(t *testing.T) {
	for name, f := range map[string]fakedynamo.Fault{
		"hangs": {DropResponse: true},
		"reset": {AfterApply: true, Reset: true},
		"500":   {AfterApply: true, Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a := w.client()
				l := w.acquire(a, "orders")
				w.fault("UpdateItem", 1, f)
				w.release(l)
				if !w.item("orders").Released {
					t.Error("not released")
				}
				l = w.acquire(a, "orders")
				p := w.goAcquire(w.ctx, a, "orders")
				synctest.Wait()
				w.fault("UpdateItem", 1, f)
				w.release(l)
				heir := p.mustHold(t)
				it := w.item("orders")
				if it.Owner != heir.owner || heir.FencingToken() != l.FencingToken()+1 || it.RVN != version(heir) {
					t.Errorf("lease %+v, item %+v", heir, it)
				}
				time.Sleep(time.Minute)
				if !heir.Valid() {
					t.Errorf("%v", heir.Err())
				}
			})
		})
	}
}

// Negative twin of the settling rule: without the memory of its own attempts an acquire
// whose answer is lost waits for itself.
func TestTwinWithoutSettlingWaitsForItself(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.release(w.acquire(a, "warm"))
		w.fault("UpdateItem", 1, fakedynamo.Fault{AfterApply: true, Reset: true})
		op := a.newAcquire("orders", AcquireOptions{LeaseDuration: 10 * time.Second}, w.ctx)
		if _, err := op.step(w.ctx, view{}); err == nil {
			t.Fatal("the answer was not lost")
		}
		op.tried = nil // the safety, switched off
		v, err := op.step(w.ctx, view{})
		if err != nil || op.won != nil || v.kind != viewHeld || v.owner != op.owner {
			t.Errorf("the twin did not fail: %+v %v", v, err)
		}
	})
}

// A process that is paused between composing a request and sending it sends nothing old.
func TestStaleAttemptIsComposedAnew(t *testing.T) {
	bubble(t, func(w *world) {
		clock := &skewedClock{}
		a := w.client(func(o *Options) { o.clock = clock })
		w.release(w.acquire(a, "warm"))
		g := &guard{clock: clock, composed: clock.read(), limit: time.Second}
		clock.boot.Add(int64(2 * time.Second))
		e := lockitem.AcquireUnknown(a.layout, lockitem.Grant{Owner: "x#1", RVN: "R", Token: 1, Lease: 10 * time.Second})
		before := w.server.Requests().Total()
		_, err := a.db.UpdateItem(w.ctx, e.UpdateInput(testTable, a.layout.Key("orders")), g.options)
		wantErr(t, err, errStale)
		if classify(err, g) != failStale || !g.stayedHere() {
			t.Errorf("classified as %d", classify(err, g))
		}
		if w.server.Requests().Total() != before {
			t.Error("it was sent")
		}
	})
}
