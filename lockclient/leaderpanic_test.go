package lockclient

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// panics runs fn and returns what it panicked with, and whether it came back at all
// (runtime.Goexit does not).
func panics(fn func()) (value any, returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { value = recover() }()
		fn()
		returned = true
	}()
	<-done
	return value, returned
}

// Work that panics frees the lock when it has unwound, and the caller gets the panic.
func TestLeaderPassesAPanicOn(t *testing.T) {
	bubble(t, func(w *world) {
		boom := errors.New("boom")
		var unwound atomic.Bool
		work := func(ctx context.Context) error {
			defer func() {
				time.Sleep(time.Second)
				if w.item("leader").Released {
					t.Error("released before the work has unwound")
				}
				unwound.Store(true)
			}()
			panic(boom)
		}
		c := w.client()
		e := w.elector(c)
		for name, run := range map[string]func(){
			"RunAsLeader": func() { _ = c.RunAsLeader(w.ctx, "leader", work) },
			"Elector":     func() { _ = e.Run(w.ctx, work) },
		} {
			unwound.Store(false)
			value, _ := panics(run)
			var p *WorkPanic
			err, _ := value.(error)
			if !errors.As(err, &p) || !errors.Is(p, boom) || p.Value != any(boom) {
				t.Fatalf("%s panicked with %v", name, value)
			}
			if text := p.Error(); !strings.Contains(text, "boom") || !strings.Contains(text, "leaderpanic_test.go") {
				t.Errorf("%s: %s", name, text)
			}
			if !unwound.Load() || !w.item("leader").Released {
				t.Errorf("%s: unwound %v, item %+v", name, unwound.Load(), w.item("leader"))
			}
		}
		// It may be run again.
		ctx, cancel := context.WithCancel(w.ctx)
		done := electing(ctx, e, untilTold)
		time.Sleep(time.Second)
		if !e.IsLeader() {
			t.Error("does not lead after a panic")
		}
		cancel()
		wantErr(t, <-done, context.Canceled)
	})
}

// So does work that leaves by runtime.Goexit, as a test's FailNow does.
func TestLeaderPassesAnExitOn(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		exits := func(context.Context) error { runtime.Goexit(); return nil }
		value, returned := panics(func() { _ = c.RunAsLeader(w.ctx, "leader", exits) })
		if value != nil || returned || !w.item("leader").Released {
			t.Errorf("panicked with %v, returned %v", value, returned)
		}
		value, returned = panics(func() { _ = w.elector(c).Run(w.ctx, exits) })
		if value != nil || returned || !w.item("leader").Released {
			t.Errorf("panicked with %v, returned %v", value, returned)
		}
	})
}

// A panic that comes while the lock is lost is passed on all the same.
func TestLeaderPassesAPanicOnAfterALoss(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		value, _ := panics(func() {
			_ = c.RunAsLeader(w.ctx, "leader", func(ctx context.Context) error {
				crash(c)
				<-ctx.Done()
				panic("lost")
			})
		})
		p, ok := value.(*WorkPanic)
		if !ok || p.Value != "lost" || p.Unwrap() != nil {
			t.Errorf("panicked with %v", value)
		}
	})
}
