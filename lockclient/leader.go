package lockclient

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// LeaderOptions configure one RunAsLeader.
type LeaderOptions struct {
	AcquireOptions

	// Grace is how long the work may take to return after RunAsLeader's context has ended.
	// The lock is kept for it meanwhile. 0: the lease.
	Grace time.Duration
}

// RunAsLeader contends for the lock called name and runs fn while it leads, in a goroutine
// of its own. When leadership is lost it ends fn's context, waits for fn to return and
// contends again; so fn never runs twice at a time in this process. It returns when
//
//   - fn returns while it leads: the lock is freed, and the error is fn's;
//   - ctx ends: fn's context ends, fn may take Grace to return while the lock is kept, and
//     only then is the lock freed. The error is ctx's, joined with fn's, or with
//     ErrStillRunning where fn did not return;
//   - the lock cannot be acquired for a lasting reason: the error is Acquire's. Once fn has
//     run, outages of the table are waited out.
//
// fn's context carries the lease: see LeaseFromContext. When fn panics, the lock is freed
// and the panic goes on in the goroutine that called RunAsLeader, as a *WorkPanic. (Work
// that panics after ErrStillRunning does so in its own goroutine.) A service that leads as
// long as it runs wants an Elector.
func (c *Client) RunAsLeader(ctx context.Context, name string, fn func(ctx context.Context) error, optFns ...func(*LeaderOptions)) error {
	var o LeaderOptions
	for _, set := range optFns {
		set(&o)
	}
	if o.Grace < 0 {
		return c.wrap("lead", name, fmt.Errorf("%w: the Grace of %s is negative", ErrInvalidOption, o.Grace))
	}
	led := false
	for fails := 0; ; {
		l, err := c.Acquire(ctx, name, func(a *AcquireOptions) { *a = o.AcquireOptions })
		if err != nil {
			if led && isOutage(err) && pause(ctx, fails, failTransient) {
				fails++
				continue
			}
			return err
		}
		led, fails = true, 0
		t := &term{lease: l, grace: o.graceOf(l), ctx: ctx, stop: ctx, over: func() {}}
		end := t.run(fn)
		end.goOn()
		switch {
		case ctx.Err() != nil:
			return c.wrap("lead", name, end.stopped(ctx))
		case !end.wasLost():
			return c.wrap("lead", name, errors.Join(end.err, end.released))
		}
	}
}

// graceOf is the grace time of work under l.
func (o *LeaderOptions) graceOf(l *Lease) time.Duration {
	if o.Grace == 0 {
		return l.lease
	}
	return o.Grace
}

// isOutage says that a request failed for a reason that may pass.
func isOutage(err error) bool {
	var f *failedRequest
	return errors.As(err, &f) && f.fail != failPermanent
}
