package streamwatcher

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// waiter waits for one lock by the protocol: watch, ready, look, and look again at every
// resync. Now and then it stops and begins anew.
type waiter struct {
	s     *schedule
	name  string
	pause chan time.Duration

	mu    sync.Mutex
	known int
	since time.Time // since when it waits; zero: it does not
}

// follow starts a waiter.
func (s *schedule) follow(ctx context.Context, name string) *waiter {
	a := &waiter{s: s, name: name, pause: make(chan time.Duration, 400)}
	watch := s.flaw.watch(s, a)
	s.all.Go(func() {
		for {
			gone := a.wait(ctx, watch)
			a.set(func() { a.since = time.Time{} })
			if ctx.Err() != nil {
				return
			}
			time.Sleep(gone)
			watch = s.flaw.watch(s, a)
		}
	})
	return a
}

// wait waits until it is told to pause, and returns for how long.
func (a *waiter) wait(ctx context.Context, watch lockevent.Watch) time.Duration {
	defer watch.Stop()
	if a.s.flaw != flawWatchLate {
		a.await(ctx, watch)
		watch.Latest()
		a.look()
	}
	a.set(func() { a.since = time.Now() })
	for {
		select {
		case <-watch.C():
		case d := <-a.pause:
			return d
		case <-ctx.Done():
			return 0
		}
		c, ok := watch.Latest()
		switch {
		case !ok:
		case c.Kind == lockevent.Resync:
			a.await(ctx, watch)
			a.look()
		default:
			v, _ := strconv.Atoi(c.RVN)
			a.set(func() { a.known = max(a.known, v) })
		}
	}
}

func (a *waiter) await(ctx context.Context, watch lockevent.Watch) {
	ctx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	_ = a.s.w.Ready(ctx, watch) // whatever it says, the waiter looks
}

// look reads the table.
func (a *waiter) look() {
	time.Sleep(3 * time.Millisecond)
	a.s.mu.Lock()
	v := a.s.versions[a.name]
	a.s.mu.Unlock()
	a.s.line.add("%s looks: %d", a.name, v)
	a.set(func() { a.known = max(a.known, v) })
}

func (a *waiter) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

func (a *waiter) state() (known int, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known, a.since
}
