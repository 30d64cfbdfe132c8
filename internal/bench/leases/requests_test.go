package leases

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/lockclient"
)

// virtual runs fn with a table in virtual time.
func virtual(t *testing.T, latency time.Duration, fn func(t *testing.T, tb *table)) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, func(o *fakedynamo.Options) { o.Latency = latency })
		defer tb.server.Close()
		fn(t, tb)
	})
}

func closed(t *testing.T, c *lockclient.Client) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestUncontendedRequests(t *testing.T) {
	virtual(t, 4*time.Millisecond, func(t *testing.T, tb *table) {
		c := tb.client(t)
		defer closed(t, c)
		pass := func(name string) (acquire, release int) {
			l, err := c.Acquire(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			acquire = tb.counted().Requests
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			return acquire, tb.counted().Requests
		}
		first, _ := pass("first")
		absent, release := pass("absent")
		known, again := pass("absent")
		figure("uncontended", map[string]int{"first_acquire": first, "acquire": absent, "acquire_known": known, "release": release},
			"uncontended: %d requests for a client's first acquire, then %d for an acquire and %d for a release", first, absent, release)
		if first > 2 || absent != 1 || known != 1 || release != 1 || again != 1 {
			t.Errorf("requests %d, %d, %d, %d, %d", first, absent, known, release, again)
		}
	})
}

// handOff is the traffic of one contended run, for each time that the lock changed hands.
type handOff struct {
	Contenders   int     `json:"contenders"`
	Processes    int     `json:"processes"`
	Requests     float64 `json:"requests"`
	Reads        float64 `json:"reads"`
	FailedWrites float64 `json:"failed_writes"`
}

func TestRequestsForEachHandOff(t *testing.T) {
	var all []handOff
	for _, processes := range []int{1, 4} {
		for _, contenders := range []int{1, 10, 100} {
			virtual(t, 4*time.Millisecond, func(t *testing.T, tb *table) {
				all = append(all, contend(t, tb, processes, contenders))
			})
		}
	}
	for _, h := range all {
		figure(fmt.Sprintf("hand_off_%dx%d", h.Processes, h.Contenders), h,
			"hand-off with %3d contenders in each of %d processes: %.2f requests, %.2f reads, %.2f failed writes",
			h.Contenders, h.Processes, h.Requests, h.Reads, h.FailedWrites)
		limit := 0.1
		if h.Processes > 1 {
			limit = 0.5
		}
		if h.FailedWrites > limit {
			t.Errorf("%+v: more than %.1f failed writes", h, limit)
		}
	}
}

// contend lets contenders hold a lock in turns, 20 ms each.
func contend(t *testing.T, tb *table, processes, contenders int) handOff {
	holds := size(1000, 200) / (processes * contenders)
	var work sync.WaitGroup
	var clients []*lockclient.Client
	for range processes {
		c := tb.client(t)
		clients = append(clients, c)
		// Its first acquire costs a read for the server's time, once in a process's life.
		if err := c.Do(t.Context(), "warm", func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for range contenders {
			work.Go(func() {
				for range max(holds, 2) {
					err := c.Do(t.Context(), "hot", func(context.Context) error {
						time.Sleep(20 * time.Millisecond)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	tb.counted()
	work.Wait()
	n := float64(processes * contenders * max(holds, 2))
	c := tb.counted()
	for _, cl := range clients {
		closed(t, cl)
	}
	return handOff{contenders, processes, float64(c.Requests) / n, float64(c.Reads) / n, float64(c.FailedWrites) / n}
}

func TestRenewalsAreEarlyEvenAndOneRequestEach(t *testing.T) {
	virtual(t, 0, func(t *testing.T, tb *table) {
		const lease = 20 * time.Second
		n, seconds := size(10_000, 500), size(120, 40)
		var mu sync.Mutex
		last := map[string]time.Time{}
		perSecond := map[int64]int{}
		var latest time.Duration
		renewed := 0
		start := time.Now()
		c := tb.client(t, func(o *lockclient.Options) {
			o.LeaseDuration = lease
			o.Observer.Renewed = func(name string, _ int64) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				latest = max(latest, now.Sub(last[name]))
				last[name] = now
				perSecond[int64(now.Sub(start)/time.Second)]++
				renewed++
			}
		})
		defer closed(t, c)
		for i := range n {
			name := fmt.Sprint("lock-", i)
			if _, err := c.Acquire(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			last[name] = time.Now()
			mu.Unlock()
		}
		tb.counted()
		time.Sleep(time.Duration(seconds) * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		sent := tb.counted()
		busiest, total := 0, 0
		const settled = 10 // seconds, when all have renewed once
		for sec := int64(settled); sec < int64(seconds); sec++ {
			busiest, total = max(busiest, perSecond[sec]), total+perSecond[sec]
		}
		mean := float64(total) / float64(seconds-settled)
		figure("renewals", map[string]any{
			"leases": n, "latest_s": latest.Seconds(), "per_second_mean": mean, "per_second_max": busiest, "requests_each": float64(sent.Requests) / float64(renewed),
		}, "%d leases of %v: renewed after at most %.2f s, %.0f renewals a second, %d in the busiest, %.3f requests each",
			n, lease, latest.Seconds(), mean, busiest, float64(sent.Requests)/float64(renewed))
		uneven := *full && float64(busiest) > 2*mean // of few leases a second has too few
		if latest >= lease/2 || uneven || sent.Requests != renewed {
			t.Errorf("renewals are late, uneven or dear: %v, %d of %.0f, %d requests for %d", latest, busiest, mean, sent.Requests, renewed)
		}
	})
}
