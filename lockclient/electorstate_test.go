package lockclient

import (
	"context"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// The probe fails when a renewal is missing, and as long as the work outlives its lease.
func TestHealthCheck(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.elector(w.client())
		standby := w.elector(w.client())
		ctx, cancel := context.WithCancel(w.ctx)
		hung := make(chan struct{})
		first := true
		done := electing(ctx, a, func(ctx context.Context) error {
			<-ctx.Done()
			if first {
				first = false
				<-hung
			}
			return nil
		})
		time.Sleep(time.Second)
		waiting := electing(ctx, standby, untilTold)
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if err := a.HealthCheck(100 * time.Millisecond); err != nil {
				t.Fatalf("while it renews: %v", err)
			}
		}
		w.server.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Fault{Reset: true} })
		start := time.Now()
		failedAt := func(tolerance time.Duration) time.Duration {
			for a.HealthCheck(tolerance) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			return time.Since(start)
		}
		if after := failedAt(0); after < 3300*time.Millisecond || after > 6700*time.Millisecond || !a.IsLeader() {
			t.Errorf("failed %v after the last renewals, leads %v", after, a.IsLeader())
		}
		if err := a.HealthCheck(10 * time.Second); err != nil {
			t.Errorf("with a tolerance: %v", err)
		}
		if after := failedAt(10 * time.Second); after < 16*time.Second || after > 19600*time.Millisecond {
			t.Errorf("failed %v after the last renewals", after)
		}
		wantErr(t, a.HealthCheck(10*time.Second), ErrLost)
		if err := standby.HealthCheck(0); err != nil {
			t.Errorf("a standby: %v", err)
		}
		w.server.Intercept(nil)
		time.Sleep(time.Minute)
		if a.HealthCheck(0) == nil || a.IsLeader() || !standby.IsLeader() {
			t.Error("work that outlives its lease is no fault")
		}
		close(hung)
		time.Sleep(time.Second)
		if err := a.HealthCheck(0); err != nil {
			t.Errorf("after the work's end: %v", err)
		}
		cancel()
		<-done
		<-waiting
	})
}

// Cases: G1
//
// Work that never returns and renewals that go on must not keep a lock for ever.
func TestLongestHold(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		hung := make(chan struct{})
		done := make(chan error, 1)
		leases := make(chan *Lease, 1)
		go func() {
			done <- a.Do(w.ctx, "orders", func(ctx context.Context) error {
				l, _ := LeaseFromContext(ctx)
				leases <- l
				<-hung
				return nil
			}, func(o *AcquireOptions) { o.MaxHold = time.Minute })
		}()
		lease := <-leases
		start := time.Now()
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Minute - 10*time.Millisecond)
		if err := lease.Renew(w.ctx, nil); err != nil || p.ended() {
			t.Errorf("before: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
		wantErr(t, lease.Renew(w.ctx, nil), ErrMaxHold)
		if !lease.Valid() || w.item("orders").Released {
			t.Error("not left to run out")
		}
		p.mustHold(t)
		if took := p.at.Sub(start); took < 69*time.Second || took > 71*time.Second {
			t.Errorf("free after %v", took)
		}
		wantErr(t, lease.Err(), ErrLost, ErrMaxHold)
		close(hung)
		wantErr(t, <-done, ErrLost, ErrMaxHold)
		w.release(p.lease)

		// The twin: without it the lock is kept.
		kept := w.acquire(a, "orders")
		time.Sleep(time.Hour)
		if !kept.Valid() {
			t.Error("lost without a bound")
		}
		w.release(kept)
		_, err := a.Acquire(w.ctx, "orders", func(o *AcquireOptions) { o.MaxHold = -1 })
		wantErr(t, err, ErrInvalidOption)
		ended := w.acquire(a, "orders", func(o *AcquireOptions) { o.MaxHold = time.Minute })
		w.release(ended)
		time.Sleep(2 * time.Minute)
		wantErr(t, ended.Err(), ErrReleased)
	})
}

// A longest hold bounds each time of leading, and the elector goes on.
func TestLongestHoldOfAnElector(t *testing.T) {
	bubble(t, func(w *world) {
		var ends []TermEnd
		e := w.elector(w.client(), func(o *ElectorOptions) {
			o.MaxHold = time.Minute
			o.OnTermEnd = func(end TermEnd) { ends = append(ends, end) }
		})
		ctx, cancel := context.WithCancel(w.ctx)
		done := electing(ctx, e, func(ctx context.Context) error {
			for ctx.Err() == nil {
				sleep(ctx, time.Second)
				if err := e.HealthCheck(0); err != nil {
					t.Errorf("an orderly end of the hold is no fault: %v", err)
				}
			}
			return nil
		})
		time.Sleep(5 * time.Minute)
		cancel()
		<-done
		if len(ends) < 4 || len(ends) > 5 {
			t.Errorf("%d terms of a minute and a lease in 5 min", len(ends))
		}
		for _, end := range ends[:len(ends)-1] {
			wantErr(t, end.Cause, ErrMaxHold)
		}
	})
}
