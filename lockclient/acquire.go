package lockclient

import (
	"context"
	"errors"
	"time"
)

// Acquire waits until it holds the lock called name and returns the lease.
//
// ctx and AcquireOptions.Wait bound the wait only; the hold outlives both and renews
// itself until Release, loss or Close. The lease's context carries ctx's values.
//
// The error is always an *Error. It is ErrInvalidName or ErrInvalidOption before anything
// is sent; ErrHeld when the wait ended while another held the lock (with the context's
// error where ctx ended it, and with ErrWaitElapsed where Wait did); ErrPaused, ErrNotALock,
// ErrMalformed, ErrNoTable or ErrSchema at once; ErrClosed when the client was closed. When
// the table cannot be reached at the first look, Acquire tries a few times and returns the
// cause; once it has seen the table it waits through every outage.
func (c *Client) Acquire(ctx context.Context, name string, optFns ...func(*AcquireOptions)) (*Lease, error) {
	o, err := c.admit(ctx, name, optFns)
	if err != nil {
		return nil, c.wrap("acquire", name, err)
	}
	defer c.work.Done()
	values := ctx
	if o.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Wait, ErrWaitElapsed)
		defer cancel()
	}
	w, s := c.join(values, name, o)
	l, wake, err := c.await(ctx, s, w)
	if handed := c.leave(s, w); handed != nil && handed != l {
		// Handed over in the very moment in which the wait ended.
		c.detach(func(ctx context.Context) { _ = handed.discard(ctx) })
	}
	if err == nil {
		err = c.unwanted(values, l)
	}
	if err != nil {
		return nil, c.wrap("acquire", name, err)
	}
	c.opt.Observer.acquired(AcquiredEvent{Name: name, Token: l.token, Wake: wake, Waited: time.Since(w.start)})
	return l, nil
}

// unwanted frees a lease that was got in the very moment in which the caller's context
// ended, and returns the context's error then.
func (c *Client) unwanted(ctx context.Context, l *Lease) error {
	cause := context.Cause(ctx)
	if cause == nil {
		return nil
	}
	c.detach(func(ctx context.Context) { _ = l.discard(ctx) })
	return withContextError(ctx, cause)
}

// admit checks a call and adds it to the client's work; the caller must call work.Done.
func (c *Client) admit(ctx context.Context, name string, optFns []func(*AcquireOptions)) (AcquireOptions, error) {
	if err := c.layout.CheckName(name); err != nil {
		return AcquireOptions{}, publicItemError(err)
	}
	o, err := c.acquireOptions(optFns)
	if err != nil {
		return o, err
	}
	if err := context.Cause(ctx); err != nil {
		return o, withContextError(ctx, err)
	}
	return o, c.begin()
}

// await goes through the queue until w holds the lock or its wait ends.
func (c *Client) await(ctx context.Context, s *slot, w *waiter) (*Lease, Wake, error) {
	baton := false
	for {
		switch c.turnOf(s, w) {
		case turnHolds:
			if ctx.Err() != nil {
				return nil, "", c.gaveUp(ctx, s, w)
			}
			return w.lease, WakeHandOver, nil
		case turnCampaign:
			g := &campaign{c: c, s: s, w: w, ctx: ctx, wake: WakeImmediate}
			if baton {
				g.wake = WakeBaton
			}
			l, err := g.run()
			if !errors.Is(err, errYield) {
				return l, g.wake, err
			}
		}
		select {
		case <-w.wake:
			baton = true
		case <-ctx.Done():
			return nil, "", c.gaveUp(ctx, s, w)
		case <-c.open.Done():
			return nil, "", ErrClosed
		}
	}
}

// gaveUp is the error of a wait that its context ended.
func (c *Client) gaveUp(ctx context.Context, s *slot, w *waiter) error {
	c.mu.Lock()
	v, holder := s.view, s.holder
	others := len(s.queue) > 0 && s.queue[0] != w
	c.mu.Unlock()
	e := &HeldError{Name: s.name, Waited: time.Since(w.start), Cause: withContextError(ctx, context.Cause(ctx))}
	switch {
	case holder != nil:
		holder.describe(e)
	case v.kind == viewHeld:
		e.Holder, e.Label, e.Since, e.Token = v.owner, v.label, v.since, v.version.Token
	case v.kind == viewUnknown && !others:
		return e.Cause // nothing was ever seen: there is nobody to blame
	}
	return e
}

// withContextError makes cause the context's own error too, except for the elapsed Wait,
// which is no context of the caller's.
func withContextError(ctx context.Context, cause error) error {
	if errors.Is(cause, ErrWaitElapsed) || errors.Is(cause, ctx.Err()) {
		return cause
	}
	return errors.Join(ctx.Err(), cause)
}

// TryAcquire takes the lock if it is free and does not wait: it sends at most two
// requests, none when a lease of this client has the lock, and never starts the
// notifier. A lock whose version this client has seen unchanged for a whole lease counts
// as free. The errors are those of Acquire; ErrHeld comes without a Cause.
func (c *Client) TryAcquire(ctx context.Context, name string, optFns ...func(*AcquireOptions)) (*Lease, error) {
	o, err := c.admit(ctx, name, optFns)
	if err != nil {
		return nil, c.wrap("acquire", name, err)
	}
	defer c.work.Done()
	start := time.Now()
	l, err := c.try(ctx, name, o)
	if err == nil {
		err = c.unwanted(ctx, l)
	}
	if err != nil {
		return nil, c.wrap("acquire", name, err)
	}
	c.opt.Observer.acquired(AcquiredEvent{Name: name, Token: l.token, Wake: WakeImmediate, Waited: time.Since(start)})
	return l, nil
}

// tryRequests is the most that TryAcquire sends.
const tryRequests = 2

func (c *Client) try(ctx context.Context, name string, o AcquireOptions) (*Lease, error) {
	c.mu.Lock()
	s := c.slotFor(name)
	holder, v := s.holder, s.view
	c.settleSlot(s)
	c.mu.Unlock()
	if holder != nil && holder.Valid() {
		e := &HeldError{Name: name}
		holder.describe(e)
		return nil, e
	}
	op := c.newAcquire(name, o, ctx)
	op.limit = tryRequests
	defer op.abandon()
	ctx, done := c.untilClosed(ctx)
	defer done()
	var err, last error
	for op.sent < op.limit {
		if v, err = op.step(ctx, v); err != nil {
			last = err
		}
		switch {
		case op.won != nil:
			return op.won, nil
		case c.open.Err() != nil:
			return nil, ErrClosed
		case err != nil && op.fatal(ctx, err):
			return nil, err
		case err == nil && v.paused:
			return nil, pausedError(v)
		case err == nil && v.kind == viewHeld && !v.dead(time.Now()):
			return nil, &HeldError{Name: name, Holder: v.owner, Label: v.label, Since: v.since, Token: v.version.Token}
		}
	}
	if last != nil {
		return nil, last // a failure used the requests up: that is nobody's hold
	}
	return nil, &HeldError{Name: name} // free at both looks, and gone to another both times
}

// untilClosed ends ctx when the client closes.
func (c *Client) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.open, func() { cancel(ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}
