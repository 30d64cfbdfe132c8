package streamwatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// Cases: R8
func TestReadyIsALevel(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		s.edit(func() { s.fault = func(fakeCall) error { return apiError("InternalServerError") } })
		wt := s.w.Watch("a")
		ctx, cancel := context.WithTimeout(s.t.Context(), 250*time.Millisecond)
		defer cancel()
		if err := s.w.Ready(ctx, wt); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ready: %v, want the context's error", err)
		}
		s.edit(func() { s.fault = nil })
		s.resync(wt, 5*time.Second) // for whom Ready's error left behind
		for range 3 {
			if err := s.w.Ready(ctx, wt); err != nil { // live outranks an ended context
				t.Errorf("Ready: %v", err)
			}
		}
		late := s.w.Watch("b")
		if err := s.w.Ready(s.t.Context(), late); err != nil {
			t.Error(err)
		}
		s.silent(late, time.Second) // created while live: nothing extra
		late.Stop()
		if err := s.w.Ready(s.t.Context(), late); !errors.Is(err, lockevent.ErrDegraded) {
			t.Errorf("Ready of a stopped watch: %v", err)
		}
	})
}

// Whoever is blocked in Ready when the reader becomes live looks because of its answer,
// and needs no resync on top.
func TestReadyInPlaceOfResync(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.silent(wt, time.Minute)
		if n := s.w.Stats().Resyncs; n != 0 {
			t.Errorf("%d resyncs", n)
		}
	})
}

// A Ready whose watch is stopped meanwhile must not hang.
func TestStopEndsReady(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		s.edit(func() { s.fault = func(fakeCall) error { return errHang } })
		wt := s.w.Watch("a")
		s.w.Watch("b")
		time.AfterFunc(time.Second, wt.Stop)
		if err := s.w.Ready(s.t.Context(), wt); !errors.Is(err, lockevent.ErrDegraded) {
			t.Errorf("Ready: %v", err)
		}
	})
}

// Cases: R2
func TestDormancy(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		time.Sleep(time.Hour)
		if n := len(s.calls); n != 0 {
			t.Fatalf("%d calls before the first watch", n)
		}
		wt := s.live("a")
		wt.Stop()
		time.Sleep(29 * time.Second)
		wt = s.w.Watch("a") // keeps the reader
		if st := s.w.Stats(); st.State != Live || st.Generation != 1 {
			t.Errorf("stats %+v", st)
		}
		time.Sleep(time.Hour)
		wt.Stop()
		s.until(Dormant, 30*time.Second+tick)
		asleep := time.Now()
		time.Sleep(time.Hour)
		if n := s.matching(func(c fakeCall) bool { return c.at.After(asleep) }); n != 0 {
			t.Errorf("%d calls while dormant", n)
		}
		if st := s.w.Stats(); st.Shards != 0 || st.Watches != 0 || st.Names != 0 {
			t.Errorf("stats %+v", st)
		}
		s.write("A", release("a", "unseen"))
		time.Sleep(time.Minute)
		wt = s.live("a")
		if st := s.w.Stats(); st.Generation != 2 {
			t.Errorf("stats %+v", st)
		}
		s.write("A", release("a", "r1"))
		if c := s.next(wt, 2*interval); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
	})
}

// A watch that begins at the very moment in which the reader goes dormant is served.
//
// Cases: R2, SF17
func TestWatchRacesWithDormancy(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		for i := range 200 {
			wt := s.live("a")
			wt.Stop()
			time.Sleep(time.Second + time.Duration(i-100)*3*time.Millisecond)
			rvn := fmt.Sprint(i)
			wt = s.live("a")
			s.write("A", release("a", rvn))
			for c := s.change(wt, 2*interval); c.RVN != rvn; c = s.change(wt, 2*interval) {
				if c.RVN != fmt.Sprint(i-1) { // a new reader begins some seconds back
					t.Fatalf("%d: got %+v", i, c)
				}
			}
			wt.Stop()
		}
		if n := s.w.Stats().Generation; n < 20 || n > 380 {
			t.Errorf("%d generations: the race was not met", n)
		}
	}, func(o *Options) { o.IdleAfter = time.Second })
}

// Cases: R10
func TestResyncIsSpread(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		const waiters = 1000
		watches := make([]lockevent.Watch, waiters)
		for i := range watches {
			watches[i] = s.w.Watch(fmt.Sprint("lock-", i))
		}
		s.until(Live, time.Second)
		start := time.Now()
		var mu sync.Mutex
		got := make([]int, waiters)
		var order []int
		for i, wt := range watches {
			go func() {
				for {
					select {
					case <-wt.C():
					case <-s.t.Context().Done():
						return
					}
					if c, ok := wt.Latest(); ok && c.Kind == lockevent.Resync {
						mu.Lock()
						got[i]++
						order = append(order, i)
						mu.Unlock()
					}
				}
			}()
		}
		for range 20 { // a shard that flaps
			s.edit(func() { s.iteratorLife = time.Nanosecond })
			time.Sleep(2 * interval)
			s.edit(func() { s.iteratorLife = 0 })
			time.Sleep(2 * interval)
		}
		flapped := time.Since(start)
		mu.Lock()
		total := len(order)
		for i := 1; i < 100; i++ {
			if order[i] < order[i-1] {
				t.Errorf("%d was told after %d: not the oldest first", order[i], order[i-1])
				break
			}
		}
		mu.Unlock()
		if most := int(flapped.Seconds()*200*1.1) + 10; total > most || total < most/2 {
			t.Errorf("%d resyncs in %v", total, flapped)
		}
		time.Sleep(20 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		for i, n := range got {
			if n == 0 {
				t.Errorf("waiter %d was never told", i)
			}
		}
		if st := s.w.Stats(); st.State != Live {
			t.Errorf("stats %+v", st)
		}
	})
}

// The bar of cost: 1,000 waiters of one process for a minute.
func TestCostOfWaiting(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		var waiters sync.WaitGroup
		for i := range 1000 {
			wt := s.w.Watch(fmt.Sprint("lock-", i))
			waiters.Go(func() {
				s.ready(wt)
				s.silent(wt, time.Minute)
			})
		}
		waiters.Wait()
		if n := s.count("GetRecords", time.Time{}); n > 250 {
			t.Errorf("%d calls of GetRecords", n)
		}
	})
}

// Cases: R13, SF17
func TestCloseWakesEverybody(t *testing.T) {
	for _, state := range []State{Dormant, Resolving, Arming, Live, Gap, Degraded} {
		t.Run(state.String(), func(t *testing.T) {
			bubble(t, one, func(t *testing.T, s *stand) {
				var wt lockevent.Watch
				switch state {
				case Dormant:
				case Resolving:
					s.edit(func() { s.fault = func(fakeCall) error { return errHang } })
					wt = s.w.Watch("a")
				case Arming:
					s.edit(func() { s.fault = hangs("GetRecords") })
					wt = s.w.Watch("a")
				case Live:
					wt = s.live("a")
				case Gap:
					wt = s.live("a")
					s.edit(func() { s.fault = hangs("GetRecords") })
				case Degraded:
					s.edit(func() { s.table = nil })
					wt = s.w.Watch("a")
				}
				s.until(state, 5*time.Second)
				blocked := make(chan error, 1)
				if wt != nil {
					go func() { blocked <- s.w.Ready(s.t.Context(), wt) }()
				}
				synctest.Wait()
				began := time.Now()
				for range 2 {
					if err := s.w.Close(s.t.Context()); err != nil {
						t.Error(err)
					}
				}
				if time.Since(began) > 0 {
					t.Errorf("Close took %v", time.Since(began))
				}
				if wt == nil {
					return
				}
				s.resync(wt, time.Nanosecond)
				if err := <-blocked; state != Live && state != Degraded && !errors.Is(err, lockevent.ErrClosed) {
					t.Errorf("blocked Ready: %v", err)
				}
				after := s.w.Watch("a")
				for _, w := range []lockevent.Watch{wt, after} {
					if err := s.w.Ready(s.t.Context(), w); !errors.Is(err, lockevent.ErrClosed) {
						t.Errorf("Ready: %v", err)
					}
					w.Stop()
				}
			})
		})
	}
}

func hangs(op string) func(fakeCall) error {
	return func(c fakeCall) error {
		if c.op == op {
			return errHang
		}
		return nil
	}
}

// deaf is a client that does not obey its context.
type deaf struct {
	*fake
	release chan struct{}
}

// A call that does not end bounds Close by its context only.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{fake: one(), release: make(chan struct{})}
		d.fault = func(c fakeCall) error {
			if c.op == "GetRecords" {
				<-d.release
			}
			return nil
		}
		w, err := New(d, d, "locks")
		if err != nil {
			t.Fatal(err)
		}
		w.Watch("a")
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		close(d.release)
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// Watches that begin and stop while events come, the reader arms, and all is closed.
//
// Cases: SF17
func TestChurn(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		var workers sync.WaitGroup
		for i := range 50 {
			workers.Go(func() {
				name := fmt.Sprint("lock-", i%7)
				for n := range 40 {
					wt := s.w.Watch(name)
					ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(n*i%300)*time.Millisecond)
					_ = s.w.Ready(ctx, wt)
					cancel()
					s.write("A", release(name, fmt.Sprintf("%d-%d", i, n)))
					s.next(wt, 5*time.Second)
					wt.Stop()
				}
			})
		}
		workers.Wait()
		if err := s.w.Close(s.t.Context()); err != nil {
			t.Error(err)
		}
		if st := s.w.Stats(); st.Watches != 0 || st.Names != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// Interest that comes back does not wait for an interval that has grown.
func TestSlide(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		time.Sleep(2 * time.Minute)
		start := time.Now()
		time.Sleep(time.Minute)
		if n := s.count("GetRecords", start); n < 50 || n > 70 {
			t.Errorf("%d calls in a quiet minute", n)
		}
		other := s.live("b")
		time.Sleep(10 * time.Millisecond)
		start = time.Now()
		s.write("A", release("a", "r1"))
		s.next(wt, interval*11/10+2*s.latency)
		time.Sleep(10 * time.Second)
		if n := s.count("GetRecords", start); n < 36 {
			t.Errorf("%d calls in ten seconds", n)
		}
		other.Stop()
	})
}
