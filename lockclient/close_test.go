package lockclient

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestWaitEndsWithCloseAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		w.acquire(a, "orders")
		mine := w.acquire(b, "mails")
		var all []*pending
		for i := range 5 {
			all = append(all, w.goAcquire(w.ctx, b, []string{"orders", "mails"}[i%2]))
		}
		time.Sleep(time.Second)
		start := time.Now()
		if err := b.Close(w.ctx); err != nil {
			t.Error(err)
		}
		for _, p := range all {
			<-p.done
			wantErr(t, p.err, ErrClosed)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("closed in %v", took)
		}
		wantErr(t, mine.Err(), ErrLost, ErrClosed)
		wantErr(t, mine.Release(w.ctx), ErrLost)
		if !w.item("mails").Released {
			t.Error("not released by Close")
		}
		if n := w.events.watched(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

// Cases: O2
func TestCloseFreesLocksForOthersAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		var waiting []*pending
		for i := range 40 {
			name := fmt.Sprint("lock-", i)
			w.acquire(a, name)
			waiting = append(waiting, w.goAcquire(w.ctx, b, name))
		}
		time.Sleep(time.Second)
		closed := time.Now()
		if err := a.Close(w.ctx); err != nil {
			t.Error(err)
		}
		for _, p := range waiting {
			p.mustHold(t)
			if took := p.at.Sub(closed); took > time.Second {
				t.Errorf("got it %v after the close", took)
			}
		}
	})
}

func TestCloseReturnsWithItsContextAndJoinsErrors(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.acquire(a, "orders")
		w.acquire(a, "mails")
		crash(a)
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		start := time.Now()
		err := a.Close(ctx)
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != time.Second {
			t.Errorf("returned after %v", took)
		}
		if again := a.Close(w.ctx); again == nil || again.Error() != err.Error() {
			t.Errorf("second Close: %v", again)
		}
	})
}

// Use before and after Close.
func TestCloseBeforeUseAndUseAfterClose(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		for range 2 {
			if err := c.Close(w.ctx); err != nil {
				t.Error(err)
			}
		}
		_, err := c.Acquire(w.ctx, "orders")
		wantErr(t, err, ErrClosed)
		_, err = c.TryAcquire(w.ctx, "orders")
		wantErr(t, err, ErrClosed)
		_, err = c.EnsureTable(w.ctx)
		wantErr(t, err, ErrClosed)
	})
}
