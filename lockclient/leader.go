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
// fn's context carries the lease: see LeaseFromContext.
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
		if done, err := l.lead(ctx, fn, o.Grace); done {
			return c.wrap("lead", name, err)
		}
	}
}

// isOutage says that a request failed for a reason that may pass.
func isOutage(err error) bool {
	var f *failedRequest
	return errors.As(err, &f) && f.fail != failPermanent
}

// lead runs fn under the lease. It reports false when leadership was lost and fn has
// returned: it is time to contend again.
func (l *Lease) lead(ctx context.Context, fn func(ctx context.Context) error, grace time.Duration) (done bool, err error) {
	work, cancel := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, l))
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	returned := make(chan error, 1)
	go func() { returned <- fn(work) }()

	select {
	case err = <-returned:
	case <-ctx.Done():
		if grace == 0 {
			grace = l.lease
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case err = <-returned:
		case <-timer.C:
			l.stopRenews() // the lock must not be freed under the work: it runs out
			go func() {
				<-returned
				_ = l.Release(context.WithoutCancel(ctx)) // ErrLost where it has run out
			}()
			return true, errors.Join(withContextError(ctx, context.Cause(ctx)), ErrStillRunning)
		}
	}
	lost := l.Err()
	rerr := l.Release(ctx)
	if errors.Is(rerr, ErrReleased) { // fn may have released it
		rerr = nil
	}
	switch {
	case ctx.Err() != nil:
		return true, errors.Join(withContextError(ctx, context.Cause(ctx)), err, rerr)
	case errors.Is(lost, ErrLost) && !errors.Is(lost, ErrClosed):
		return false, nil
	}
	return true, errors.Join(err, rerr)
}
