package lockclient

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// The pause between two tries of one write: full jitter below a bound that doubles.
const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
)

// pause waits before try number n (from 0) after a failure of this class, and reports
// whether ctx let it.
func pause(ctx context.Context, n int, fail failure) bool {
	var d time.Duration
	switch fail {
	case failSkew, failStale: // the next one is composed, and signed, by a better clock
		return ctx.Err() == nil
	case failConflict: // a held check in somebody's transaction: over in milliseconds
		d = 5*time.Millisecond + rand.N(45*time.Millisecond)
	default:
		d = rand.N(min(firstBackoff<<min(n, 10), maxBackoff))
	}
	return sleep(ctx, d)
}

// sleep waits for d and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// learn takes what a request showed into the client's view of the lock. An item that
// carries the version of an abandoned write belongs to nobody and is freed.
func (op *acquireOp) learn(ctx context.Context, a answer) view {
	c := op.c
	c.mu.Lock()
	s := c.slotFor(op.name)
	v := s.observe(a, c.opt.MaxLease)
	orphan, found := s.lost.find(a.item)
	if op.limit > 0 && v.kind != viewHeld {
		s.nudge() // what a TryAcquire sees, a contender here may not know yet
	}
	c.settleSlot(s)
	c.mu.Unlock()
	if !found || v.kind != viewHeld || op.limit > 0 && op.sent >= op.limit {
		return v
	}
	op.sent++
	return c.freeOrphan(ctx, op.name, orphan, v)
}

// freeOrphan releases a lock that an abandoned write of this client took, and returns
// what is known then.
func (c *Client) freeOrphan(ctx context.Context, name string, orphan attempt, v view) view {
	rvn := newRVN()
	composed := c.compose()
	now, _, _ := c.server.now(composed.at)
	a := c.update(ctx, "release", name, composed, c.cleanTimeout(),
		lockitem.Release(orphan.hold(), lockitem.Touch{RVN: rvn, TTL: c.ttl(now)}))
	if a.err != nil || (a.fail != failNone && a.fail != failRefused) {
		return v
	}
	c.opt.Observer.recovered("acquire", name)
	c.keepPause(ctx, name, a.item)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slotFor(name)
	defer c.settleSlot(s)
	return s.observe(a, c.opt.MaxLease)
}

// keepPause takes the TTL off a free lock that was paused while it was held: the pause
// must outlive the retention.
func (c *Client) keepPause(ctx context.Context, name string, it *lockitem.Item) {
	if it == nil || !it.Released || !it.Paused || it.TTL.IsZero() {
		return
	}
	e := lockitem.RaiseFloor(it.Version(), it.Token, lockitem.Touch{RVN: newRVN()})
	c.update(ctx, "release", name, c.compose(), c.cleanTimeout(), e)
}

// cleanTimeout bounds one request of a clean-up, so that a lost one does not use up all
// the time that there is.
func (c *Client) cleanTimeout() time.Duration {
	return min(c.opt.ReleaseTimeout/releaseTries, maxRequestTimeout)
}

// giveBackTimeout bounds one request of a release or hand-over.
func (c *Client) giveBackTimeout(lease time.Duration) time.Duration {
	return min(requestTimeout(lease), c.cleanTimeout())
}

// cleanUp makes sure that none of an abandoned operation's writes leaves a held lock. It
// releases what was applied, and lifts the token of a free lock (or writes a tombstone
// where no item is), so that a copy which arrives late fails.
func (c *Client) cleanUp(ctx context.Context, name string, tried attempts) {
	for n := 0; ; n++ {
		a := c.read(ctx, name, c.cleanTimeout())
		if a.err == nil {
			a = c.cleanOnce(ctx, name, tried, a)
			if a.fail == failNone && a.err == nil && a.item != nil && a.item.Released && a.item.Token < tried.topToken() {
				continue // released; now above every attempt that may come late
			}
			if a.fail == failNone && a.err == nil {
				c.keepPause(ctx, name, a.item)
				c.mu.Lock()
				s := c.slotFor(name)
				if s.holder == nil {
					s.observe(a, c.opt.MaxLease)
				}
				s.nudge()
				c.settleSlot(s)
				c.mu.Unlock()
				return
			}
		} else if a.fail == failNone {
			c.freeUnread(ctx, name, tried)
			return
		}
		if !pause(ctx, n, a.fail) {
			return
		}
	}
}

// freeUnread releases whichever of the attempts has made the item what it is, where the
// item cannot be read: each names itself in its condition.
func (c *Client) freeUnread(ctx context.Context, name string, tried attempts) {
	for _, at := range tried {
		c.freeOrphan(ctx, name, at, view{})
	}
}

// cleanOnce does what the state that was read asks for; a success without a write when
// there is nothing to do.
func (c *Client) cleanOnce(ctx context.Context, name string, tried attempts, seen answer) answer {
	composed := c.compose()
	now, _, _ := c.server.now(composed.at)
	t := lockitem.Touch{RVN: newRVN(), TTL: c.ttl(now)}
	var e lockitem.Expr
	own, applied := tried.find(seen.item)
	switch {
	case seen.item == nil:
		e = lockitem.Tombstone(c.layout, tried.topToken(), t)
	case applied && !seen.item.Released:
		e = lockitem.Release(own.hold(), t)
	case seen.item.Released && seen.item.Token < tried.topToken():
		if seen.item.Paused {
			t.TTL = time.Time{}
		}
		e = lockitem.RaiseFloor(seen.item.Version(), tried.topToken(), t)
	default:
		return seen
	}
	return c.update(ctx, "clean up", name, composed, c.cleanTimeout(), e)
}
