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

// chance gives random numbers from 0 up to, but without, 1. It belongs to one goroutine,
// so that a test that seeds each of them gets the same course again.
type chance func() float64

// anyChance is the chance of everything outside of tests, whatever it is for.
func anyChance(string) chance { return rand.Float64 }

// upTo returns a random duration of at most d.
func (c chance) upTo(d time.Duration) time.Duration { return time.Duration(c() * float64(d+1)) }

// backoff returns the delay after the given number of failures in a row (from 1): it
// doubles up to the cap, and half of it is random so that readers do not march in step.
func (c chance) backoff(failures int) time.Duration {
	d := backoffCap
	if failures < 7 {
		d = min(backoffCap, backoffBase<<max(failures-1, 0))
	}
	return d/2 + c.upTo(d/2)
}

// jitter returns d changed at random by up to the given fraction either way.
func (c chance) jitter(d time.Duration, fraction float64) time.Duration {
	return d + time.Duration((2*c()-1)*fraction*float64(d))
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
