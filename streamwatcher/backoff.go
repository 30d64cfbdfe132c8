package streamwatcher

import (
	"context"
	"math/rand/v2"
	"time"
)

// The bounds of the delay between two attempts of a call that failed.
const (
	backoffBase = 100 * time.Millisecond
	backoffCap  = 5 * time.Second
)

// backoff returns the delay after the given number of failures in a row (from 1): it
// doubles up to the cap, and half of it is random so that readers do not march in step.
func backoff(failures int) time.Duration {
	d := backoffCap
	if failures < 7 {
		d = min(backoffCap, backoffBase<<max(failures-1, 0))
	}
	return d/2 + rand.N(d/2+1)
}

// jitter returns d changed at random by up to the given fraction either way.
func jitter(d time.Duration, fraction float64) time.Duration {
	return d + time.Duration((2*rand.Float64()-1)*fraction*float64(d))
}

// sleep waits for d, for a signal on early, or for the end of ctx, which alone makes
// it return false. A nil early never signals.
func sleep(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-early:
		return true
	case <-ctx.Done():
		return false
	}
}
