package lockclient

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestDoHoldsWhileTheWorkRuns(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		boom := errors.New("boom")
		err := c.Do(w.ctx, "orders", func(ctx context.Context) error {
			l, ok := LeaseFromContext(ctx)
			if !ok || !l.Valid() || w.item("orders").Owner != l.owner {
				t.Error("not held inside")
			}
			time.Sleep(time.Minute)
			if !l.Valid() || ctx.Err() != nil {
				t.Errorf("ended: %v", l.Err())
			}
			return boom
		})
		if !errors.Is(err, boom) || !w.item("orders").Released {
			t.Errorf("%v, item %+v", err, w.item("orders"))
		}
		err = c.Do(w.ctx, "orders", func(ctx context.Context) error {
			l, _ := LeaseFromContext(ctx)
			return l.Release(ctx)
		})
		if err != nil {
			t.Errorf("the work may release by itself: %v", err)
		}
	})
}

func TestDoReleasesOnPanic(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		func() {
			defer func() {
				if r := recover(); r != "ouch" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = c.Do(w.ctx, "orders", func(context.Context) error { panic("ouch") })
		}()
		if !w.item("orders").Released {
			t.Error("still held")
		}
	})
}

// Cases: C6
//
// The work's context ends when the lease is lost, and Do says so.
func TestDoTellsOfALossInTheWork(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		err := c.Do(w.ctx, "orders", func(ctx context.Context) error {
			crash(c)
			<-ctx.Done()
			wantErr(t, context.Cause(ctx), ErrLost)
			return nil
		})
		wantErr(t, err, ErrLost)
	})
}

// The hold is bound to the context: work that ignores its end loses the lock after a
// lease and not later, and is never released under it.
func TestDoStopsRenewingWhenItsContextEnds(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		ctx, cancel := context.WithCancel(w.ctx)
		hung := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- a.Do(ctx, "orders", func(ctx context.Context) error {
				<-hung
				return nil
			})
		}()
		time.Sleep(30 * time.Second)
		p := w.goAcquire(w.ctx, b, "orders")
		cancel()
		ended := time.Now()
		time.Sleep(time.Second)
		if p.ended() || w.item("orders").Released {
			t.Fatal("released while the work runs")
		}
		p.mustHold(t)
		if took := p.at.Sub(ended); took > 12*time.Second {
			t.Errorf("the next one got it after %v", took)
		}
		close(hung)
		wantErr(t, <-done, ErrLost)
		if it := w.item("orders"); it.Released || it.Owner != p.lease.owner {
			t.Errorf("the late release touched the new hold: %+v", it)
		}
	})
}
