package lockclient

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// Cases: J2, J4
func TestWaitersCostAtMostTheFallback(t *testing.T) {
	for name, mute := range map[string]bool{"live notifier": false, "silent notifier": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a := w.client()
				l := w.acquire(a, "orders", func(o *AcquireOptions) { o.LeaseDuration = time.Hour })
				if !mute {
					w.release(l)
					l = w.acquire(a, "orders") // which renews often
				}
				var all []*pending
				for range 10 {
					c := w.client(w.watching)
					for range 10 {
						all = append(all, w.goAcquire(w.ctx, c, "orders"))
					}
				}
				time.Sleep(time.Second)
				w.events.mute.Store(mute)
				w.server.Requests().Reset()
				time.Sleep(10 * time.Minute)
				for _, r := range w.server.Requests().Log() {
					if r.Op == "UpdateItem" && r.Outcome != "ok" { // none but the holder's succeeds
						t.Errorf("a write by a waiter: %+v", r)
					}
				}
				most := 0 // one for each client, minute and fallback, none for its other waiters
				if mute {
					most = 10 * 11
				}
				if reads := w.requests("GetItem"); reads > most {
					t.Errorf("%d reads by 100 waiters of 10 clients in ten minutes, want at most %d", reads, most)
				}
				w.events.mute.Store(false)
				w.release(l)
				for _, p := range all {
					go func() {
						if <-p.done; p.lease != nil {
							_ = p.lease.Release(w.ctx)
						}
					}()
				}
				for _, p := range all {
					if <-p.done; p.err != nil {
						t.Error(p.err)
					}
				}
			})
		})
	}
}

// Cases: J5
func TestHandOverTakesTheStreamsLatencyAndLittleMore(t *testing.T) {
	const delay = 200 * time.Millisecond
	for _, waiters := range []int{1, 10, 50} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			bubble(t, func(w *world) {
				w.events.delay.Store(int64(delay))
				var mu sync.Mutex
				var took []time.Duration
				var released time.Time
				var all sync.WaitGroup
				holds := max(40/waiters, 2)
				for range waiters + 1 {
					c := w.client(w.watching)
					all.Go(func() {
						for range holds {
							err := c.Do(w.ctx, "orders", func(context.Context) error {
								mu.Lock()
								if !released.IsZero() {
									took = append(took, time.Since(released))
								}
								mu.Unlock()
								time.Sleep(500 * time.Millisecond)
								mu.Lock()
								defer mu.Unlock()
								released = time.Now()
								return nil
							})
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				slices.Sort(took)
				if p50 := took[len(took)/2]; p50 > delay+100*time.Millisecond {
					t.Errorf("median hand-over %v of %d", p50, len(took))
				}
			})
		})
	}
}

// Cases: P3
func TestContentionIsCountedApartFromErrors(t *testing.T) {
	bubble(t, func(w *world) {
		var mu sync.Mutex
		seen := map[string]int{}
		a, b := w.client(), w.client(func(o *Options) {
			o.Observer.Request = func(e RequestEvent) {
				mu.Lock()
				defer mu.Unlock()
				seen[e.Op+" "+e.Outcome]++
			}
		})
		counts := func() map[string]int {
			mu.Lock()
			defer mu.Unlock()
			defer clear(seen)
			return maps.Clone(seen)
		}
		w.release(w.acquire(b, "warm"))
		w.acquire(a, "orders")
		counts()
		_, err := b.TryAcquire(w.ctx, "orders")
		wantErr(t, err, ErrHeld)
		if got := counts(); got["acquire refused"] != 1 || len(got) != 1 {
			t.Errorf("contention: %v", got)
		}
		w.fault("UpdateItem", 2, fakedynamo.Fault{Error: internalError})
		_, err = b.TryAcquire(w.ctx, "mails")
		if got := counts(); err == nil || got["acquire unknown"] != 2 {
			t.Errorf("failures: %v, %v", err, got)
		}
		time.Sleep(time.Second)
		counts()
		w.fault("UpdateItem", 1, fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "ThrottlingException"}})
		_, err = b.TryAcquire(w.ctx, "mails")
		if got := counts(); err != nil || got["acquire failed"] != 1 {
			t.Errorf("throttled once: %v, %v", err, got)
		}
	})
}
