package lockclient

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// leading is a RunAsLeader in a goroutine of its own.
func (w *world) leading(ctx context.Context, c *Client, fn func(context.Context) error, optFns ...func(*LeaderOptions)) chan error {
	done := make(chan error, 1)
	go func() { done <- c.RunAsLeader(ctx, "leader", fn, optFns...) }()
	return done
}

// Cases: F7, O3
func TestLeaderWhoseWorkHangs(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		ctx, cancel := context.WithCancel(w.ctx)
		hung := make(chan struct{})
		leases := make(chan *Lease, 1)
		done := w.leading(ctx, a, func(ctx context.Context) error {
			l, _ := LeaseFromContext(ctx)
			leases <- l
			<-hung
			return nil
		}, func(o *LeaderOptions) { o.Grace = 30 * time.Second })
		lease := <-leases
		time.Sleep(25 * time.Second)
		next := w.goAcquire(w.ctx, b, "leader")
		cancel()
		ended := time.Now()
		time.Sleep(30*time.Second - time.Millisecond)
		if !lease.Valid() || next.ended() || len(done) != 0 {
			t.Fatalf("in the grace time: lease %v, another leads: %v, returned: %v", lease.Err(), next.ended(), len(done) != 0)
		}
		err := <-done
		wantErr(t, err, context.Canceled, ErrStillRunning)
		if took := time.Since(ended); took != 30*time.Second {
			t.Errorf("returned after %v", took)
		}
		if w.item("leader").Released {
			t.Error("released while the work runs")
		}
		next.mustHold(t)
		if took := next.at.Sub(ended); took > 42*time.Second {
			t.Errorf("another leads after %v", took)
		}
		close(hung)
		time.Sleep(time.Second)
		if it := w.item("leader"); it.Released || it.Owner != next.lease.owner {
			t.Errorf("the late end of the work touched the new hold: %+v", it)
		}
	})
}

// Cases: O3
func TestLeaderFreesTheLockWhenItsWorkHasReturned(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		ctx, cancel := context.WithCancel(w.ctx)
		boom := errors.New("boom")
		done := w.leading(ctx, a, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(7 * time.Second) // cleans up
			if w.item("leader").Released {
				t.Error("released while the work runs")
			}
			return boom
		})
		time.Sleep(time.Second)
		next := w.goAcquire(w.ctx, b, "leader")
		time.Sleep(time.Second)
		cancel()
		wantErr(t, <-done, context.Canceled, boom)
		returned := time.Now()
		next.mustHold(t)
		if took := next.at.Sub(returned); took > time.Second {
			t.Errorf("another leads %v after the work", took)
		}
	})
}

// A leader that lost the lock stops its work and contends again, through an outage too.
func TestLeaderThatLostContendsAgain(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		var terms, running atomic.Int64
		done := w.leading(w.ctx, a, func(ctx context.Context) error {
			if running.Add(1) != 1 {
				t.Error("the work runs twice")
			}
			defer running.Add(-1)
			if terms.Add(1) == 3 {
				return nil
			}
			<-ctx.Done()
			wantErr(t, context.Cause(ctx), ErrLost)
			return ctx.Err()
		})
		time.Sleep(15 * time.Second)
		w.server.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Fault{Reset: true} })
		time.Sleep(2 * time.Minute) // an outage
		w.server.Intercept(nil)
		time.Sleep(15 * time.Second)
		if terms.Load() != 2 {
			t.Fatalf("%d terms", terms.Load())
		}
		if err := w.server.DeleteRaw(testTable, a.layout.Key("leader")); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%v", err)
		}
		if !w.item("leader").Released {
			t.Error("not released")
		}
	})
}

func TestLeaderErrors(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		work := func(context.Context) error { return nil }
		wantErr(t, a.RunAsLeader(w.ctx, "", work), ErrInvalidName)
		wantErr(t, a.RunAsLeader(w.ctx, "leader", work, func(o *LeaderOptions) { o.Grace = -1 }), ErrInvalidOption)
		w.acquire(b, "leader")
		wantErr(t, a.RunAsLeader(w.ctx, "leader", work, func(o *LeaderOptions) { o.Wait = time.Second }), ErrHeld, ErrWaitElapsed)
		done := w.leading(w.ctx, a, work)
		time.Sleep(time.Second)
		if err := a.Close(w.ctx); err != nil {
			t.Error(err)
		}
		wantErr(t, <-done, ErrClosed)

		closing := w.client()
		led := make(chan error, 1)
		go func() {
			led <- closing.RunAsLeader(w.ctx, "mails", func(ctx context.Context) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		time.Sleep(time.Second)
		if err := closing.Close(w.ctx); err != nil {
			t.Error(err)
		}
		wantErr(t, <-led, ErrClosed)
	})
}
