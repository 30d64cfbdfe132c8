package lockclient

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
)

func (w *world) elector(c *Client, optFns ...func(*ElectorOptions)) *Elector {
	w.t.Helper()
	e, err := NewElector(c, "leader", optFns...)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// electing is a Run in a goroutine of its own.
func electing(ctx context.Context, e *Elector, fn func(context.Context) error) chan error {
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, fn) }()
	return done
}

// untilTold is work that returns when it is told to.
func untilTold(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func TestElectorContendsAgainAfterALossAndFreesAtItsEnd(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		var ends []TermEnd
		e := w.elector(a, func(o *ElectorOptions) {
			o.OnTermEnd = func(end TermEnd) { ends = append(ends, end) }
		})
		ctx, cancel := context.WithCancelCause(w.ctx)
		shutdown, boom := errors.New("shutdown"), errors.New("boom")
		var running, terms atomic.Int64
		done := electing(ctx, e, func(ctx context.Context) error {
			if running.Add(1) != 1 {
				t.Error("the work runs twice")
			}
			defer running.Add(-1)
			terms.Add(1)
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			if errors.Is(context.Cause(ctx), shutdown) && w.item("leader").Released {
				t.Error("released while the work runs")
			}
			return boom
		})
		time.Sleep(15 * time.Second)
		if !e.IsLeader() {
			t.Error("does not lead")
		}
		if err := w.server.DeleteRaw(testTable, a.layout.Key("leader")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		w.server.Requests().Reset()
		w.server.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault { return fakedynamo.Fault{Reset: true} })
		time.Sleep(time.Minute) // an outage
		if e.IsLeader() {
			t.Error("leads without a table")
		}
		if n := len(w.server.Requests().Log()); n > 600 {
			t.Errorf("%d requests in an outage of a minute", n)
		}
		w.server.Intercept(nil)
		time.Sleep(15 * time.Second)
		if terms.Load() != 3 || !e.IsLeader() {
			t.Errorf("%d terms, leads: %v", terms.Load(), e.IsLeader())
		}
		cancel(shutdown)
		wantErr(t, <-done, context.Canceled, shutdown, boom)
		if !w.item("leader").Released || e.IsLeader() || running.Load() != 0 {
			t.Error("not given back")
		}
		if len(ends) != 3 {
			t.Fatalf("%d ends: %+v", len(ends), ends)
		}
		wantErr(t, ends[0].Cause, ErrLost)
		wantErr(t, ends[1].Cause, ErrLost)
		wantErr(t, ends[2].Cause, shutdown)
		if ends[2].Token <= ends[1].Token || ends[1].Token <= ends[0].Token || !errors.Is(ends[0].Err, boom) || ends[0].Took < 3*time.Second {
			t.Errorf("%+v", ends)
		}
	})
}

// Work that returns at once must not burn requests, and leaves the lock to others.
func TestElectorWhoseWorkReturnsAtOnceBacksOff(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		boom := errors.New("boom")
		var failed atomic.Int64
		e := w.elector(a, func(o *ElectorOptions) {
			o.OnTermEnd = func(end TermEnd) {
				if errors.Is(end.Err, boom) && end.Cause == nil {
					failed.Add(1)
				}
			}
		})
		ctx, cancel := context.WithCancel(w.ctx)
		done := electing(ctx, e, func(context.Context) error { return boom })
		time.Sleep(10 * time.Minute)
		// A mean of 5 s once the bound has reached the lease.
		if n := failed.Load(); n < 60 || n > 240 {
			t.Errorf("%d terms in 10 min", n)
		}
		if n := w.requests("UpdateItem"); n > 500 {
			t.Errorf("%d writes in 10 min", n)
		}
		other := w.elector(w.client())
		led := electing(ctx, other, untilTold)
		time.Sleep(30 * time.Second)
		if !other.IsLeader() {
			t.Error("work that works does not get to lead")
		}
		before := failed.Load()
		time.Sleep(time.Minute)
		if failed.Load() != before {
			t.Error("two lead")
		}
		cancel()
		wantErr(t, <-done, context.Canceled)
		wantErr(t, <-led, context.Canceled)
	})
}

// A term that lasted resets the back-off.
func TestElectorBackOffIsResetByATermThatLasted(t *testing.T) {
	bubble(t, func(w *world) {
		var terms atomic.Int64
		ctx, cancel := context.WithCancel(w.ctx)
		done := electing(ctx, w.elector(w.client()), func(ctx context.Context) error {
			if terms.Add(1) <= 10 {
				return nil
			}
			sleep(ctx, 11*time.Second)
			return nil
		})
		for terms.Load() < 11 {
			time.Sleep(time.Second)
		}
		before := terms.Load()
		time.Sleep(10 * time.Minute)
		if n := terms.Load() - before; n < 52 {
			t.Errorf("%d terms of 11 s in 10 min: the pause between them is more than 0.1 s", n)
		}
		cancel()
		<-done
	})
}

// Cases: O3, F7
func TestElectorWhoseWorkIgnoresItsContext(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		e := w.elector(a, func(o *ElectorOptions) { o.Grace = 30 * time.Second })
		ctx, cancel := context.WithCancel(w.ctx)
		hung := make(chan struct{})
		done := electing(ctx, e, func(context.Context) error { <-hung; return nil })
		time.Sleep(25 * time.Second)
		next := w.goAcquire(w.ctx, b, "leader")
		cancel()
		ended := time.Now()
		time.Sleep(30*time.Second - time.Millisecond)
		if !e.IsLeader() || next.ended() || len(done) != 0 {
			t.Fatalf("in the grace time: leads %v, another leads %v, returned %v", e.IsLeader(), next.ended(), len(done) != 0)
		}
		wantErr(t, <-done, context.Canceled, ErrStillRunning)
		if took := time.Since(ended); took != 30*time.Second {
			t.Errorf("returned after %v", took)
		}
		if w.item("leader").Released {
			t.Error("released while the work runs")
		}
		wantErr(t, e.Run(w.ctx, untilTold), ErrStillRunning)
		next.mustHold(t)
		time.Sleep(10 * time.Second)
		wantErr(t, e.HealthCheck(0), ErrLost)
		wantErr(t, e.Run(w.ctx, untilTold), ErrStillRunning)
		close(hung)
		time.Sleep(time.Second)
		if it := w.item("leader"); it.Released || it.Owner != next.lease.owner {
			t.Errorf("the late end of the work touched the new hold: %+v", it)
		}
		if err := e.HealthCheck(0); err != nil {
			t.Errorf("%v", err)
		}
		ctx, cancel = context.WithCancel(w.ctx)
		done = electing(ctx, e, untilTold)
		time.Sleep(time.Minute)
		cancel()
		wantErr(t, <-done, ErrHeld, context.Canceled)
	})
}

func TestElectorBadInput(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		for _, bad := range []func(*ElectorOptions){
			func(o *ElectorOptions) { o.Grace = -1 },
			func(o *ElectorOptions) { o.StandBack = -1 },
			func(o *ElectorOptions) { o.Wait = time.Second },
			func(o *ElectorOptions) { o.LeaseDuration = time.Nanosecond },
			func(o *ElectorOptions) { o.MaxHold = -1 },
		} {
			e, err := NewElector(a, "leader", bad)
			wantErr(t, err, ErrInvalidOption)
			if e != nil {
				t.Error("an elector and an error")
			}
		}
		_, err := NewElector(a, "")
		wantErr(t, err, ErrInvalidName)
		_, err = NewElector(nil, "leader")
		wantErr(t, err, ErrInvalidOption)

		e := w.elector(a)
		wantErr(t, e.StepDown(w.ctx), ErrNotLeading)
		ctx, cancel := context.WithCancel(w.ctx)
		done := electing(ctx, e, untilTold)
		time.Sleep(time.Second)
		wantErr(t, e.Run(w.ctx, untilTold), ErrRunning)
		if !e.IsLeader() {
			t.Error("the second Run disturbed the first")
		}
		cancel()
		wantErr(t, <-done, context.Canceled)
		wantErr(t, e.Run(ctx, untilTold), context.Canceled)

		done = electing(w.ctx, e, untilTold) // it may run again
		time.Sleep(time.Second)
		if !e.IsLeader() {
			t.Error("does not lead again")
		}
		if err := a.Close(w.ctx); err != nil {
			t.Error(err)
		}
		wantErr(t, <-done, ErrClosed)
		wantErr(t, e.Run(w.ctx, untilTold), ErrClosed)
		_, err = e.Leader(w.ctx)
		wantErr(t, err, ErrClosed)
	})
}

// An operator's pause is no reason for a service to end.
func TestElectorWaitsOutAPause(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.release(w.acquire(a, "leader"))
		key := a.layout.Key("leader")
		m := w.server.Item(testTable, key)
		m[lockattr.Paused] = &types.AttributeValueMemberS{Value: "maintenance"}
		if err := w.server.PutRaw(testTable, m); err != nil {
			t.Fatal(err)
		}
		e := w.elector(w.client())
		ctx, cancel := context.WithCancel(w.ctx)
		done := electing(ctx, e, untilTold)
		w.server.Requests().Reset()
		time.Sleep(10 * time.Minute)
		if n := len(w.server.Requests().Log()); len(done) != 0 || e.IsLeader() || n > 160 {
			t.Errorf("returned %v, leads %v, %d requests in 10 min", len(done) != 0, e.IsLeader(), n)
		}
		delete(m, lockattr.Paused)
		if err := w.server.PutRaw(testTable, m); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if !e.IsLeader() {
			t.Error("does not lead after the pause")
		}
		cancel()
		wantErr(t, <-done, context.Canceled)
	})
}

// A lasting fault ends Run with its reason.
func TestElectorEndsAtALastingFault(t *testing.T) {
	bubble(t, func(w *world) {
		c, err := New(w.server.Client(), "elsewhere")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close(w.ctx) }()
		wantErr(t, w.elector(c).Run(w.ctx, untilTold), ErrNoTable)
		for _, err := range w.elector(c).Leaders(w.ctx) {
			wantErr(t, err, ErrNoTable)
		}
	})
}
