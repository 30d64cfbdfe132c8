package leases

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is what the process has in use after a collection.
func memory() (heap, stacks int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}

// park starts n goroutines that wait for ctx in fn, and returns what each of them costs.
func park(ctx context.Context, n int, fn func(ctx context.Context)) (heap, stacks float64, goroutines int, done *sync.WaitGroup) {
	h0, s0 := memory()
	g0 := runtime.NumGoroutine()
	done = &sync.WaitGroup{}
	for range n {
		done.Go(func() { fn(ctx) })
	}
	time.Sleep(time.Second)
	synctest.Wait()
	h1, s1 := memory()
	return float64(h1-h0) / float64(n), float64(s1-s0) / float64(n), runtime.NumGoroutine() - g0, done
}

func TestWaitersOnOneName(t *testing.T) {
	virtual(t, time.Millisecond, func(t *testing.T, tb *table) {
		n := size(10_000, 500)
		holder, c := tb.client(t), tb.client(t)
		defer closed(t, holder)
		defer closed(t, c)
		if _, err := holder.Acquire(t.Context(), "hot"); err != nil {
			t.Fatal(err)
		}
		idle, stop := context.WithCancel(t.Context())
		ownHeap, ownStacks, _, done := park(idle, n, func(ctx context.Context) { <-ctx.Done() })
		stop()
		done.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		heap, stacks, goroutines, done := park(ctx, n, func(ctx context.Context) { _, _ = c.Acquire(ctx, "hot") })
		tb.counted()
		time.Sleep(5 * time.Minute)
		sent := tb.counted()
		fromWaiters := sent.Reads + sent.FailedWrites
		cancel()
		done.Wait()
		extra := goroutines - n
		heap, stacks = heap-ownHeap, stacks-ownStacks
		figure("waiters", map[string]any{
			"waiters": n, "requests_while_held": fromWaiters, "goroutines_beyond_callers": extra, "heap_bytes_each": heap, "stack_bytes_each": stacks,
		}, "%d waiters on one name: %d requests in 5 min while the holder renews, %d goroutines beyond the callers', %.0f B of heap each (and the callers' stacks grow by %.0f B)",
			n, fromWaiters, extra, heap, stacks)
		if fromWaiters != 0 || extra > 4 || *full && heap > 2048 {
			t.Errorf("waiting is dear: %d requests, %d goroutines, %.0f bytes each", fromWaiters, extra, heap)
		}
		if sent.Writes == 0 {
			t.Error("the holder did not renew: the test shows nothing")
		}
	})
}
