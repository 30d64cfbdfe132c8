package streamwatcher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/lockstream/lockstream/lockevent"
)

// stand is a watcher on a fake inside a bubble.
type stand struct {
	t *testing.T
	*fake
	w *Watcher
}

// bubble runs a test in virtual time. The watcher is closed at its end, and a goroutine
// that is left makes the bubble fail.
func bubble(t *testing.T, f func() *fake, test func(t *testing.T, s *stand), optFns ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{t: t, fake: f()}
		s.w = s.watcher(optFns...)
		test(t, s)
	})
}

// watcher returns another watcher of the same stream.
func (s *stand) watcher(optFns ...func(*Options)) *Watcher {
	s.t.Helper()
	w, err := New(s.fake, s.fake, "locks", optFns...)
	if err != nil {
		s.t.Fatal(err)
	}
	w.api.dated = func(middleware.Metadata) (time.Time, bool) { return s.serverNow(), true }
	s.t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return w
}

// one is a fake with a single open shard.
func one() *fake { return newFake(&fakeShard{id: "A"}) }

// live watches name and waits until the watcher is ready.
func (s *stand) live(name string) lockevent.Watch {
	s.t.Helper()
	wt := s.w.Watch(name)
	s.ready(wt)
	return wt
}

func (s *stand) ready(wt lockevent.Watch) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	if err := s.w.Ready(ctx, wt); err != nil {
		s.t.Fatalf("Ready: %v; state %v", err, s.w.Stats().State)
	}
}

// next returns the next change of a watch, which must come within the limit.
func (s *stand) next(wt lockevent.Watch, limit time.Duration) lockevent.Change {
	s.t.Helper()
	deadline := time.After(limit)
	for {
		select {
		case <-wt.C():
		case <-deadline:
			s.t.Fatalf("nothing within %v; state %v", limit, s.w.Stats().State)
		}
		if c, ok := wt.Latest(); ok {
			return c
		}
	}
}

// change returns the next change that is no resync.
func (s *stand) change(wt lockevent.Watch, limit time.Duration) lockevent.Change {
	s.t.Helper()
	start := time.Now()
	for {
		if c := s.next(wt, limit-time.Since(start)); c.Kind != lockevent.Resync {
			return c
		}
	}
}

// told waits for the change to rvn or for a resync, which outranks it and has the waiter
// look at the table: either way it knows.
func (s *stand) told(wt lockevent.Watch, rvn string, limit time.Duration) {
	s.t.Helper()
	start := time.Now()
	for {
		if c := s.next(wt, limit-time.Since(start)); c.Kind == lockevent.Resync || c.RVN == rvn {
			return
		}
	}
}

// wakes writes changes until one is delivered as itself; those before may be lost in a
// resync. Reading may have slowed down because nothing had happened.
func (s *stand) wakes(wt lockevent.Watch, shard, name string) {
	s.t.Helper()
	time.Sleep(slideMost + interval)
	wt.Latest()
	s.write(shard, release(name, "probe"))
	if c := s.change(wt, slideMost+interval); c.RVN != "probe" {
		s.t.Fatalf("got %+v", c)
	}
}

func (s *stand) resync(wt lockevent.Watch, limit time.Duration) {
	s.t.Helper()
	if c := s.next(wt, limit); c.Kind != lockevent.Resync {
		s.t.Fatalf("got %+v, want a resync", c)
	}
}

// silent checks that a watch receives nothing for a while.
func (s *stand) silent(wt lockevent.Watch, d time.Duration) {
	s.t.Helper()
	select {
	case <-wt.C():
		if c, ok := wt.Latest(); ok {
			s.t.Fatalf("unexpected %+v", c)
		}
	case <-time.After(d):
	}
}

// until waits for a state.
func (s *stand) until(state State, limit time.Duration) {
	s.t.Helper()
	start := time.Now()
	for s.w.Stats().State != state {
		if time.Since(start) > limit {
			s.t.Fatalf("state %v after %v, want %v", s.w.Stats().State, limit, state)
		}
		time.Sleep(time.Millisecond)
	}
}
