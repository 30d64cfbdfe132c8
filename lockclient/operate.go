package lockclient

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// maxChanges bounds how often an operator's act is tried on a lock that changes under it.
const maxChanges = 16

// operate sends one conditional write of an operator's until its outcome is known or ctx ends.
// Each try has a version of its own. It reports false when the lock is, or came to be, in
// another state than the write is for; the answer then has that state.
func (c *Client) operate(ctx context.Context, op, name string, build func(rvn string, now time.Time) lockitem.Expr) (answer, bool, error) {
	var tried attempts
	skewed := false
	for n := 0; ; n++ {
		at := attempt{rvn: newRVN()}
		composed := c.compose()
		now, _, _ := c.server.now(composed.at)
		a := c.update(ctx, op, name, composed, requestTimeout(c.opt.LeaseDuration), build(at.rvn, now))
		switch a.fail {
		case failNone:
			return a, a.err == nil, a.err
		case failRefused:
			_, own := tried.find(a.item)
			return a, own, a.err
		case failPermanent:
			return a, false, a.err
		case failSkew:
			if skewed {
				return a, false, a.err
			}
			skewed = true
		case failUnknown:
			tried = append(tried, at)
		}
		if !pause(ctx, n, a.fail) {
			return a, false, fmt.Errorf("%w; last request: %w", withContextError(ctx, context.Cause(ctx)), a.err)
		}
	}
}

// change reads a lock and writes what build makes of its state, again when it changes
// meanwhile. build returns false where there is nothing to do. The item is nil where there is
// none.
func (c *Client) change(
	ctx context.Context, op, name string, build func(it *lockitem.Item, rvn string, now time.Time) (lockitem.Expr, bool),
) error {
	a, err := c.readSurely(ctx, name)
	if err != nil {
		return err
	}
	for range maxChanges {
		if _, needed := build(a.item, "", time.Time{}); !needed {
			c.infoOf(name, a)
			return nil
		}
		it, ok := a.item, false
		a, ok, err = c.operate(ctx, op, name, func(rvn string, now time.Time) lockitem.Expr {
			e, _ := build(it, rvn, now)
			return e
		})
		if err != nil {
			return err
		}
		if ok {
			c.infoOf(name, a)
			return nil
		}
	}
	return ErrChanged
}

// asOperator frames an act on one lock: name, Close, and the error's context.
func (c *Client) asOperator(ctx context.Context, op, name string, act func(ctx context.Context) error) error {
	if err := c.layout.CheckName(name); err != nil {
		return c.wrap(op, name, publicItemError(err))
	}
	if err := c.begin(); err != nil {
		return c.wrap(op, name, err)
	}
	defer c.work.Done()
	open, done := c.untilClosed(ctx)
	defer done()
	err := act(open)
	if err != nil && open.Err() != nil && ctx.Err() == nil {
		err = ErrClosed
	}
	return c.wrap(op, name, err)
}
