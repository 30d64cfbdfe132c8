package lockclient

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// waker counts by which wake-ups a client's leases were got.
type waker struct {
	mu sync.Mutex
	by map[Wake]int
}

func (k *waker) hook(o *Options) {
	k.by = map[Wake]int{}
	o.Observer.Acquired = func(e AcquiredEvent) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.by[e.Wake]++
	}
}

// The promise of the whole project: nothing is sent while the holder renews, and the
// release wakes.
func TestWaiterSendsNothingWhileTheHolderRenews(t *testing.T) {
	bubble(t, func(w *world) {
		var k waker
		a, b := w.client(), w.client(w.watching, k.hook)
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		w.server.Requests().Reset()
		time.Sleep(10 * time.Minute)
		if reads := w.requests("GetItem"); reads != 0 {
			t.Errorf("%d reads by a waiter", reads)
		}
		for _, r := range w.server.Requests().Log() {
			if r.Outcome != "ok" {
				t.Errorf("%s %s", r.Op, r.Outcome)
			}
		}
		released := time.Now()
		w.release(l)
		p.mustHold(t)
		if took := p.at.Sub(released); took > 20*time.Millisecond {
			t.Errorf("handed off in %v", took)
		}
		if k.by[WakeEvent] != 1 {
			t.Errorf("woken by %v", k.by)
		}
	})
}

func TestTakeoverWithANotifierNeedsNoPoll(t *testing.T) {
	bubble(t, func(w *world) {
		var k waker
		a, b := w.client(), w.client(w.watching, k.hook)
		w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(25 * time.Second)
		crash(a)
		crashed := time.Now()
		p.mustHold(t)
		if took := p.at.Sub(crashed); took < 6*time.Second || took > 10600*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
		if k.by[WakeExpiry] != 1 {
			t.Errorf("woken by %v", k.by)
		}
	})
}

// The stream is a hint: dead, it costs time and never the lock.
func TestSilentNotifierCostsAFallbackAndNeverTheLock(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		l := w.acquire(a, "orders", func(o *AcquireOptions) { o.LeaseDuration = 30 * time.Minute })
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		w.events.mute.Store(true)
		released := time.Now()
		w.release(l)
		p.mustHold(t)
		if took := p.at.Sub(released); took > DefaultFallback+time.Second {
			t.Errorf("got it after %v", took)
		}
	})
}

func TestNotifierThatIsNotReadyIsPolledAroundAndResyncEndsThePolling(t *testing.T) {
	bubble(t, func(w *world) {
		for _, state := range []error{errNotYet, lockevent.ErrDegraded} {
			w.events.mu.Lock()
			w.events.ready = state
			w.events.mu.Unlock()
			a, b := w.client(), w.client(w.watching)
			l := w.acquire(a, "orders")
			p := w.goAcquire(w.ctx, b, "orders")
			time.Sleep(time.Second)
			w.server.Requests().Reset()
			time.Sleep(20 * time.Second)
			if reads := w.requests("GetItem"); reads < 14 || reads > 26 {
				t.Errorf("%v: %d reads in 20 s, want one a second", state, reads)
			}
			w.events.setReady(nil)
			time.Sleep(time.Second)
			w.server.Requests().Reset()
			time.Sleep(time.Minute)
			if reads := w.requests("GetItem"); reads > 1 {
				t.Errorf("%v: %d reads although the notifier is live", state, reads)
			}
			w.release(l)
			w.release(p.mustHold(t))
		}
	})
}

// R5: a late event of a version that is known does not make it young again.
func TestLateEventDoesNotRejuvenate(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		crash(a)
		seen := time.Now()
		for range 9 {
			time.Sleep(time.Second)
			w.events.tell(lockevent.Change{Name: "orders", Kind: lockevent.Renewed, RVN: version(l), Token: l.token, Lease: l.lease, Held: true})
		}
		p.mustHold(t)
		if took := p.at.Sub(seen); took > 10600*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
	})
}

func TestEventsThatLieDoNoHarm(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		for _, ch := range []lockevent.Change{
			{Kind: lockevent.Released, RVN: "forged", Token: l.token},
			{Kind: lockevent.Released, RVN: "old", Token: l.token - 1},
			{Kind: lockevent.Deleted},
			{Kind: lockevent.Unknown},
			{Kind: lockevent.Resync},
			{Kind: lockevent.TakenOver, RVN: "forged", Token: l.token + 5, Held: true, Lease: time.Millisecond},
		} {
			ch.Name = "orders"
			w.events.tell(ch)
			time.Sleep(time.Second)
			if p.ended() || !l.Valid() {
				t.Fatalf("%v broke the lock: %v", ch, l.Err())
			}
		}
		w.release(l)
		p.mustHold(t)
	})
}

// Cases: F1
//
// A hundred contenders of one process: one write for each hand-over, nothing
// refused, everybody gets it, in order.
func TestContendersOfOneClientAreHandedTheLockInOrder(t *testing.T) {
	bubble(t, func(w *world) {
		var handed atomic.Int64
		a := w.client(w.watching, func(o *Options) {
			o.Observer.Released = func(e ReleasedEvent) {
				if e.HandedOver {
					handed.Add(1)
				}
			}
		})
		first := w.acquire(a, "orders")
		var order []int
		var mu sync.Mutex
		var all []*pending
		for i := range 100 {
			p := &pending{done: make(chan struct{})}
			all = append(all, p)
			go func() {
				defer close(p.done)
				if p.lease, p.err = a.Acquire(w.ctx, "orders"); p.err != nil {
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				p.err = p.lease.Release(w.ctx)
			}()
			synctest.Wait() // so that they queue in this order
		}
		w.server.Requests().Reset()
		w.release(first)
		last := first.FencingToken()
		for i, p := range all {
			<-p.done
			if p.err != nil {
				t.Fatalf("contender %d: %v", i, p.err)
			}
			if p.lease.FencingToken() <= last {
				t.Errorf("token %d after %d", p.lease.FencingToken(), last)
			}
			last = p.lease.FencingToken()
		}
		for i, got := range order {
			if i != got {
				t.Fatalf("order %v", order)
			}
		}
		// 100 hand-offs: eight in a row are one write each, then a release, a read and an acquire.
		if n := w.server.Requests().Total(); n > 150 {
			t.Errorf("%d requests for 100 hand-offs: %v", n, w.server.Requests().Counts())
		}
		for _, r := range w.server.Requests().Log() {
			if r.Outcome != "ok" {
				t.Errorf("%s: %s", r.Op, r.Outcome)
			}
		}
		if handed.Load() < 80 {
			t.Errorf("only %d were handed over", handed.Load())
		}
	})
}

// The bound of local hand-overs lets another process in.
func TestOtherProcessesAreNotStarved(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(w.watching), w.client(w.watching)
		stop := make(chan struct{})
		var workers sync.WaitGroup
		var got atomic.Int64
		for range 4 {
			workers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					l, err := a.Acquire(w.ctx, "orders")
					if err != nil {
						t.Error(err)
						return
					}
					got.Add(1)
					time.Sleep(20 * time.Millisecond)
					if err := l.Release(w.ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		for range 5 {
			before := got.Load()
			l := w.acquire(b, "orders")
			if n := got.Load() - before; n > 2*maxLocalHandOvers+2 {
				t.Errorf("waited for %d holds of the other process", n)
			}
			w.release(l)
			time.Sleep(500 * time.Millisecond)
		}
		close(stop)
		workers.Wait()
	})
}

// R1: whoever leaves the head of the queue passes the baton.
func TestHeadThatLeavesPassesTheBaton(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching, func(o *Options) { o.Fallback = time.Hour })
		l := w.acquire(a, "orders", func(o *AcquireOptions) { o.LeaseDuration = time.Hour })
		ctx, cancel := context.WithCancel(w.ctx)
		head := w.goAcquire(ctx, b, "orders")
		synctest.Wait()
		second := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		if n := w.events.watched(); n != 1 {
			t.Errorf("%d watches for two contenders of one client", n)
		}
		// The release's event goes to the head, whose context ends before it can act.
		w.server.SetLatency(50 * time.Millisecond)
		w.release(l)
		cancel()
		<-head.done
		released := time.Now()
		second.mustHold(t)
		if took := second.at.Sub(released); took > time.Second {
			t.Errorf("the next one took it after %v", took)
		}
	})
}

func TestHotLockOverFourClients(t *testing.T) {
	bubble(t, func(w *world) {
		w.events.delay.Store(int64(30 * time.Millisecond))
		var refused, acquired atomic.Int64
		var inside atomic.Int64
		var workers sync.WaitGroup
		for range 4 {
			c := w.client(w.watching, func(o *Options) {
				o.Observer.Request = func(e RequestEvent) {
					if e.Outcome == "refused" {
						refused.Add(1)
					}
				}
			})
			for range 8 {
				workers.Go(func() {
					for range 10 {
						err := c.Do(w.ctx, "hot", func(ctx context.Context) error {
							if inside.Add(1) != 1 {
								t.Error("two holders")
							}
							time.Sleep(15 * time.Millisecond)
							inside.Add(-1)
							acquired.Add(1)
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		workers.Wait()
		if acquired.Load() != 320 {
			t.Errorf("%d holds", acquired.Load())
		}
		if per := float64(refused.Load()) / 320; per > 0.5 {
			t.Errorf("%.2f refused writes for each hand-off", per)
		}
	})
}
