package lockclient

import (
	"context"
	"errors"
	"fmt"
)

// Do acquires the lock, runs fn while it holds it, and releases it before it returns.
//
// The hold is bound to ctx, other than with Acquire: fn's context ends with ctx, with the
// lease, and when fn returns. When ctx ends, renewals stop too, so that an fn which
// ignores its context cannot keep the lock longer than a lease; but the lock is never
// released while fn runs. A panic of fn releases the lock and goes on.
//
// The error is Acquire's, or fn's joined with a *LostError when the lease was lost before
// fn returned, and with the release's error.
func (c *Client) Do(ctx context.Context, name string, fn func(ctx context.Context) error, optFns ...func(*AcquireOptions)) (err error) {
	if fn == nil {
		return c.wrap("acquire", name, fmt.Errorf("%w: no function to run", ErrInvalidOption))
	}
	l, err := c.Acquire(ctx, name, optFns...)
	if err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, l))
	defer cancel(nil)
	defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	defer context.AfterFunc(ctx, l.stopRenews)()
	defer func() {
		if rerr := l.Release(ctx); !errors.Is(rerr, ErrReleased) { // fn may have released it
			err = errors.Join(err, rerr)
		}
	}()
	return fn(work)
}
