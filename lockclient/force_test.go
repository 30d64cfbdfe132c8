package lockclient

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

func (w *world) inspect(c *Client, name string) Info {
	w.t.Helper()
	info, err := c.Inspect(w.ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return info
}

// Cases: H3
//
// What changed since it was shown is not touched.
func TestForceReleaseOfWhatHasChanged(t *testing.T) {
	for name, change := range map[string]func(w *world, l *Lease){
		"renewed": func(w *world, l *Lease) { _ = l.Renew(w.ctx, nil) },
		"acquired by another": func(w *world, l *Lease) {
			w.release(l)
			w.acquire(w.client(), "orders")
		},
		"released": func(w *world, l *Lease) { w.release(l) },
		"paused":   func(w *world, l *Lease) { _ = l.c.Pause(w.ctx, "orders", "x") },
	} {
		for _, now := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(w *world) {
					a, operator := w.client(), w.client()
					l := w.acquire(a, "orders")
					info := w.inspect(operator, "orders")
					change(w, l)
					before := *w.item("orders")
					err := operator.ForceRelease(w.ctx, info, func(o *ForceOptions) { o.Now = now })
					wantErr(t, err, ErrChanged)
					if after := *w.item("orders"); after.RVN != before.RVN || after.Released != before.Released {
						t.Errorf("%+v became %+v", before, after)
					}
				})
			})
		}
	}
}

// A running holder is told, ends as revoked, and frees the lock when its work has returned:
// not before, and long before its lease would have run out.
func TestForceReleaseOfARunningHolder(t *testing.T) {
	bubble(t, func(w *world) {
		a, operator := w.client(), w.client()
		var ended, returned, freed time.Time
		done := make(chan error, 1)
		go func() {
			done <- a.Do(w.ctx, "orders", func(ctx context.Context) error {
				<-ctx.Done()
				ended = time.Now()
				time.Sleep(time.Second) // work that winds down
				if w.item("orders").Released {
					t.Error("freed under the work")
				}
				returned = time.Now()
				return context.Cause(ctx)
			})
		}()
		time.Sleep(time.Second)
		start := time.Now()
		if err := operator.ForceRelease(w.ctx, w.inspect(operator, "orders")); err != nil {
			t.Fatal(err)
		}
		freed = time.Now()
		err := <-done
		wantErr(t, err, ErrLost)
		var lost *LostError
		if !errors.As(err, &lost) || lost.Reason != Revoked {
			t.Errorf("%v", err)
		}
		if ended.Sub(start) > 4*time.Second || freed.Sub(returned) > 1300*time.Millisecond || freed.Before(returned) {
			t.Errorf("told after %v, returned after %v, freed after %v", ended.Sub(start), returned.Sub(start), freed.Sub(start))
		}
		if it := w.item("orders"); !it.Released || !it.StopBy.IsZero() {
			t.Errorf("%+v", it)
		}
	})
}

// Work that does not end when it is revoked, and a holder that is dead: freed one whole lease
// after the mark.
func TestForceReleaseOfAHolderThatDoesNotAnswer(t *testing.T) {
	for _, dead := range []bool{false, true} {
		bubble(t, func(w *world) {
			a, operator := w.client(), w.client()
			l := w.acquire(a, "orders")
			info := w.inspect(operator, "orders")
			if dead {
				crash(a)
			}
			start := time.Now()
			if err := operator.ForceRelease(w.ctx, info); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took < l.lease || took > l.lease+1100*time.Millisecond {
				t.Errorf("freed after %v", took)
			}
			if !w.item("orders").Released {
				t.Error("not free")
			}
			if err := l.Err(); !errors.Is(err, ErrLost) {
				t.Errorf("%v", err)
			}
			w.release(w.acquire(operator, "orders"))
		})
	}
}

// ctx bounds the wait, the mark stays, and a second call ends it: at once when a lease has
// passed by then.
func TestForceReleaseInTwoCalls(t *testing.T) {
	bubble(t, func(w *world) {
		a, operator := w.client(), w.client()
		w.acquire(a, "orders")
		info := w.inspect(operator, "orders")
		crash(a)
		ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
		defer cancel()
		wantErr(t, operator.ForceRelease(ctx, info), context.DeadlineExceeded)
		wantErr(t, operator.ForceRelease(w.ctx, info), ErrChanged) // the mark was a change
		info = w.inspect(operator, "orders")
		if !info.Marked || info.Free {
			t.Errorf("%+v", info)
		}
		time.Sleep(10 * time.Second)
		start := time.Now()
		if err := operator.ForceRelease(w.ctx, info); err != nil || !w.item("orders").Released {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// Now frees at once; the holder learns of it at its next renewal, and its writes are fenced.
func TestForceReleaseNow(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a, operator := w.client(), w.client(w.watching)
		l := w.acquire(a, "orders")
		heir := w.goAcquire(w.ctx, operator, "orders")
		time.Sleep(time.Second)
		start := time.Now()
		if err := operator.ForceRelease(w.ctx, w.inspect(operator, "orders"), func(o *ForceOptions) { o.Now = true }); err != nil {
			t.Fatal(err)
		}
		if got := heir.mustHold(t); got.FencingToken() <= l.FencingToken() || heir.at.Sub(start) > 100*time.Millisecond {
			t.Errorf("after %v", heir.at.Sub(start))
		}
		wantErr(t, l.Transact(w.ctx, add("row")), ErrLost)
		if w.counted("row") != 0 {
			t.Error("not fenced")
		}
		if err := operator.ForceRelease(w.ctx, Info{Name: "never", Free: true}); err != nil || w.item("never") != nil {
			t.Errorf("of a free lock: %v", err)
		}
		wantErr(t, operator.ForceRelease(w.ctx, Info{Name: "orders"}), ErrInvalidOption)
		wantErr(t, operator.ForceRelease(w.ctx, Info{}), ErrInvalidName)
	})
}

// Marks and releases whose answers are lost are settled.
func TestForceReleaseWithLostAnswers(t *testing.T) {
	for name, f := range map[string]fakedynamo.Fault{
		"500":   {AfterApply: true, Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}},
		"hangs": {DropResponse: true},
	} {
		for _, now := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(w *world) {
					a, operator := w.client(), w.client()
					w.acquire(a, "orders")
					info := w.inspect(operator, "orders")
					crash(a)
					w.fault("UpdateItem", 1, f)
					if err := operator.ForceRelease(w.ctx, info, func(o *ForceOptions) { o.Now = now }); err != nil {
						t.Error(err)
					}
					if !w.item("orders").Released {
						t.Error("not free")
					}
				})
			})
		}
	}
}

// A holder that releases just after it was marked frees the lock, and does not hand it over.
func TestReleaseOfAMarkedLock(t *testing.T) {
	bubble(t, func(w *world) {
		a, operator := w.client(), w.client()
		l := w.acquire(a, "orders")
		heir := w.goAcquire(w.ctx, a, "orders")
		done := make(chan error, 1)
		info := w.inspect(operator, "orders")
		go func() { done <- operator.ForceRelease(w.ctx, info) }()
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		w.release(l)
		if got := heir.mustHold(t); got.FencingToken() <= l.FencingToken() || !w.item("orders").StopBy.IsZero() {
			t.Errorf("%+v", w.item("orders"))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestForceReleaseEndsWithClose(t *testing.T) {
	bubble(t, func(w *world) {
		a, operator := w.client(), w.client()
		w.acquire(a, "orders")
		info := w.inspect(operator, "orders")
		crash(a)
		done := make(chan error, 1)
		go func() { done <- operator.ForceRelease(w.ctx, info) }()
		time.Sleep(time.Second)
		if err := operator.Close(w.ctx); err != nil {
			t.Error(err)
		}
		err := <-done
		wantErr(t, err, ErrClosed)
		if errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
