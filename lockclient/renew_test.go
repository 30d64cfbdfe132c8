package lockclient

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

var internalError = &fakedynamo.APIError{Code: "InternalServerError", Status: 500}

// share makes this share of all writes meet f.
func (w *world) share(part float64, f fakedynamo.Fault) {
	d := newDice(1, 1)
	w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
		if r.Op != "UpdateItem" || !d.chance(part) {
			return fakedynamo.Fault{}
		}
		return f
	})
}

// Cases: B5
func TestLeaseIsSafeForConcurrentUse(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client(func(o *Options) { o.LeaseDuration, o.RenewInterval = time.Second, 50*time.Millisecond })
		var warned atomic.Int64
		l := w.acquire(a, "orders", func(o *AcquireOptions) {
			o.OnExpiring = func(l *Lease) {
				warned.Add(1)
				_, _ = l.Valid(), l.Remaining()
			}
		})
		d := newDice(2, 2)
		w.server.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault {
			if d.chance(0.05) {
				return fakedynamo.Fault{DelayResponse: 700 * time.Millisecond} // beyond the request's time-out
			}
			return fakedynamo.Fault{}
		})
		ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				for sleep(ctx, time.Duration(7+i)*time.Millisecond) {
					if l.Valid() != (l.Err() == nil) {
						t.Error("Valid and Err contradict each other")
					}
					_, _, _ = l.Data(), l.Remaining(), l.FencingToken()
				}
			})
		}
		all.Go(func() {
			for sleep(ctx, 90*time.Millisecond) {
				_ = l.Renew(ctx, []byte("x"))
			}
		})
		all.Wait()
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
	})
}

// Cases: B7
func TestShortLeaseSurvivesFiveMinutesOfRareErrors(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client(func(o *Options) { o.LeaseDuration, o.RenewInterval = time.Second, 100*time.Millisecond })
		l := w.acquire(a, "orders")
		w.share(0.01, fakedynamo.Fault{Error: internalError})
		time.Sleep(5 * time.Minute)
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
		if n := w.requests("UpdateItem"); n < 3000 {
			t.Errorf("only %d renewals: the test shows nothing", n)
		}
	})
}

// Cases: J1
func TestHalfOfTheRenewalsThrottled(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		l := w.acquire(a, "orders")
		w.share(0.5, fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "ProvisionedThroughputExceededException"}})
		time.Sleep(20 * time.Second)
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
	})
}

// Cases: B9
func TestAutomaticAndManualRenewalsTakeTurns(t *testing.T) {
	bubble(t, func(w *world) {
		var refused atomic.Int64
		a := w.client(func(o *Options) {
			o.LeaseDuration, o.RenewInterval = time.Second, 20*time.Millisecond
			o.Observer.Request = func(e RequestEvent) {
				if e.Outcome == "refused" {
					refused.Add(1)
				}
			}
		})
		l := w.acquire(a, "orders")
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := 0; sleep(ctx, time.Duration(11+i)*time.Millisecond); n++ {
					data := fmt.Sprint(i, " ", n)
					if err := l.Renew(w.ctx, []byte(data)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if refused.Load() != 0 || !l.Valid() {
			t.Errorf("%d refused renewals, lease %v", refused.Load(), l.Err())
		}
		if got := string(w.item("orders").Data); got != string(l.Data()) {
			t.Errorf("data %q, in the table %q", l.Data(), got)
		}
	})
}

// Cases: B6
func TestOldHoldSaysNothingForTheNewOne(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		var old, fresh atomic.Int64
		l := w.acquire(a, "orders", func(o *AcquireOptions) { o.OnExpiring = func(*Lease) { old.Add(1) } })
		time.Sleep(5 * time.Second)
		w.release(l)
		n := w.server.Requests().Total()
		wantErr(t, l.Renew(w.ctx, nil), ErrReleased)
		if w.server.Requests().Total() != n {
			t.Error("a renewal after the release was sent")
		}
		l = w.acquire(a, "orders", func(o *AcquireOptions) {
			o.OnExpiring = func(warned *Lease) {
				fresh.Add(1)
				if warned.FencingToken() == 0 || !warned.Valid() {
					t.Error("warned of a lease that is over")
				}
			}
		})
		time.Sleep(50 * time.Second) // renewals arm the warning anew
		if fresh.Load() != 0 {
			t.Errorf("warned %d times while renewals succeed", fresh.Load())
		}
		crash(a)
		<-l.Done()
		if old.Load() != 0 || fresh.Load() != 1 {
			t.Errorf("warned %d times of the old hold and %d of the new one", old.Load(), fresh.Load())
		}
	})
}

// Cases: B6
func TestFailingReleaseDoesNotSkipTheOthers(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		for i := range 5 {
			w.acquire(a, fmt.Sprint("lock-", i))
		}
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			if r.Key == "lock-2" {
				return fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "AccessDeniedException"}}
			}
			return fakedynamo.Fault{}
		})
		err := a.Close(w.ctx)
		if err == nil || !strings.Contains(err.Error(), "lock-2") {
			t.Errorf("%v", err)
		}
		for i := range 5 {
			if it := w.item(fmt.Sprint("lock-", i)); it.Released != (i != 2) {
				t.Errorf("lock-%d released: %v", i, it.Released)
			}
		}
	})
}

// Cases: B11
func TestFirstAcquiresAtOnceHaveOneWinner(t *testing.T) {
	bubble(t, func(w *world) {
		var winners atomic.Int64
		var winner atomic.Pointer[Lease]
		var all sync.WaitGroup
		for range 50 {
			c := w.client()
			all.Go(func() {
				l, err := c.TryAcquire(w.ctx, "orders")
				if err == nil {
					winners.Add(1)
					winner.Store(l)
					return
				}
				wantErr(t, err, ErrHeld)
				_, err = c.Acquire(w.ctx, "orders", func(o *AcquireOptions) { o.Wait = 50 * time.Second })
				wantErr(t, err, ErrHeld, ErrWaitElapsed)
			})
		}
		all.Wait() // five leases of work
		if winners.Load() != 1 || !winner.Load().Valid() {
			t.Errorf("%d winners", winners.Load())
		}
	})
}

// Cases: B12
func TestLeaseIsSetForEachAcquireAndRenewsByItself(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		short := w.acquire(a, "orders", func(o *AcquireOptions) { o.LeaseDuration = 3 * time.Second })
		long := w.acquire(a, "mails")
		if got := w.item("orders").Lease; got != 3*time.Second {
			t.Errorf("lease %v", got)
		}
		w.server.Requests().Reset()
		time.Sleep(time.Minute)
		if short.Err() != nil || long.Err() != nil {
			t.Errorf("%v, %v", short.Err(), long.Err())
		}
		if n := w.requests("UpdateItem"); n < 60+18 || n > 75+23 {
			t.Errorf("%d renewals in a minute of leases of 3 s and 10 s", n)
		}
	})
}

// Cases: C10
func TestRenewalsDoNotDependOnTheWork(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		var second *pending
		err := a.Do(w.ctx, "orders", func(context.Context) error {
			second = w.goAcquire(w.ctx, b, "orders")
			time.Sleep(50 * time.Second) // an initialiser that hangs
			if second.ended() {
				t.Error("a second leader started")
			}
			return internalError
		})
		wantErr(t, err, internalError)
		second.mustHold(t)
	})
}
