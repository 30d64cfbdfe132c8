package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lockstream/lockstream/internal/limiterproxy"
	"github.com/lockstream/lockstream/lockevent"
	"github.com/lockstream/lockstream/streamwatcher"
)

// wake is how long waiters took to be told of a write, from its answer on.
type wake struct {
	IntervalMS   int     `json:"interval_ms"`
	Proxy        bool    `json:"behind_limits"`
	VisibilityMS int     `json:"visibility_ms"`
	Readers      int     `json:"readers"`
	Samples      int     `json:"samples"`
	P50          float64 `json:"p50_ms"`
	P99          float64 `json:"p99_ms"`
	Resyncs      int     `json:"resyncs"` // samples that a resync answered
	PollsSecond  float64 `json:"get_records_per_second"`
	Throttled    float64 `json:"throttled_per_second"`
	Crowded      bool    `json:"crowding_noticed"`
}

// names is how many locks change side by side.
const names = 6

// measureWakes takes the wake-up latency on the emulator, then behind the limits.
func measureWakes(ctx context.Context, r *result) error {
	for _, w := range []struct {
		wake
		rounds int
	}{
		{wake{IntervalMS: 10, Readers: 1}, 60},
		{wake{IntervalMS: 50, Readers: 1}, 40},
		{wake{IntervalMS: 250, Readers: 1}, 40},
		{wake{IntervalMS: 250, Readers: 1, Proxy: true}, 15},
		{wake{IntervalMS: 250, Readers: 1, Proxy: true, VisibilityMS: 200}, 15},
		{wake{IntervalMS: 250, Readers: 1, Proxy: true, VisibilityMS: 1000}, 8},
		{wake{IntervalMS: 250, Readers: 2, Proxy: true}, 15},
		{wake{IntervalMS: 250, Readers: 6, Proxy: true}, 8},
	} {
		if err := w.measure(ctx, w.rounds); err != nil {
			return err
		}
		fmt.Printf("wake: interval %3d ms, limits %-5v visibility %4d ms, %d readers: p50 %6.1f ms, p99 %6.1f ms (%d samples, %d by resync), %.1f GetRecords/s, %.1f throttled/s\n",
			w.IntervalMS, w.Proxy, w.VisibilityMS, w.Readers, w.P50, w.P99, w.Samples, w.Resyncs, w.PollsSecond, w.Throttled)
		r.Wake = append(r.Wake, w.wake)
		if !w.Proxy {
			q := float64(w.IntervalMS)
			r.bar(w.P50 <= q/2+20, "p50 %.1f ms at %v ms", w.P50, q)
			r.bar(w.P99 <= q+50, "p99 %.1f ms at %v ms", w.P99, q)
		}
	}
	return nil
}

func (w *wake) measure(ctx context.Context, rounds int) (err error) {
	b, err := newBed(ctx, w.Proxy, func(o *limiterproxy.Options) { o.Visibility = time.Duration(w.VisibilityMS) * time.Millisecond })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	readers := make([]*streamwatcher.Watcher, w.Readers)
	for i := range readers {
		if readers[i], err = b.watcher(time.Duration(w.IntervalMS) * time.Millisecond); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, readers[i].Close(context.Background())) }()
	}
	m := &meter{bed: b, interval: time.Duration(w.IntervalMS) * time.Millisecond}
	began := time.Now()
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() { m.fail(m.follow(ctx, readers[i%len(readers)], fmt.Sprintf("lock-%d", i), rounds)) })
	}
	for _, reader := range readers[min(names, len(readers)):] { // those beyond only read
		defer reader.Watch("nobody's").Stop()
	}
	all.Wait()
	if m.err != nil {
		return m.err
	}
	w.add(m, readers, time.Since(began).Seconds())
	return nil
}

func (w *wake) add(m *meter, readers []*streamwatcher.Watcher, seconds float64) {
	slices.Sort(m.took)
	w.Samples, w.Resyncs = len(m.took), m.resyncs
	w.P50, w.P99 = quantile(m.took, 0.5), quantile(m.took, 0.99)
	for _, r := range readers {
		st := r.Stats()
		w.PollsSecond += float64(st.Requests["GetRecords"]) / seconds
		w.Throttled += float64(st.Throttles) / seconds
		w.Crowded = w.Crowded || st.Crowded
	}
}

func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(len(sorted)-1, int(q*float64(len(sorted))))
	return float64(sorted[i].Microseconds()) / 1000
}

// meter collects the latencies of several names.
type meter struct {
	*bed
	interval time.Duration

	mu      sync.Mutex
	took    []time.Duration
	resyncs int
	err     error
}

func (m *meter) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
	}
}

// follow writes one lock again and again, at random moments, and waits to be told.
func (m *meter) follow(ctx context.Context, reader *streamwatcher.Watcher, name string, rounds int) error {
	watch := reader.Watch(name)
	defer watch.Stop()
	ready, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := reader.Ready(ready, watch); err != nil {
		return err
	}
	watch.Latest()
	for range rounds {
		time.Sleep(rand.N(2 * m.interval)) // a whole number of intervals, so that every moment is as likely
		rvn, err := m.release(ctx, name)
		if err != nil {
			return err
		}
		if err := m.told(ctx, watch, rvn, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// told waits for the change to rvn, or for a resync, with which a waiter would find it.
func (m *meter) told(ctx context.Context, watch lockevent.Watch, rvn string, written time.Time) error {
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for {
		select {
		case <-watch.C():
		case <-late.C:
			return fmt.Errorf("no wake-up within a minute: %s", rvn)
		case <-ctx.Done():
			return ctx.Err()
		}
		c, ok := watch.Latest()
		resync := ok && c.Kind == lockevent.Resync
		if !resync && c.RVN != rvn {
			continue
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.took = append(m.took, time.Since(written))
		if resync {
			m.resyncs++
		}
		return nil
	}
}
