package lockclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// acquireOp is one operation that acquires a lock: a read or a write at a time, each by
// what the last one told, with the memory of its own writes whose outcome is unknown.
type acquireOp struct {
	c      *Client
	name   string
	opt    AcquireOptions
	values context.Context // whose values the lease's context carries
	owner  string

	tried  attempts
	won    *Lease
	wrote  bool // the last step was a write
	skewed bool // the signing clock was corrected, and no answer came since
	seen   bool // the table answered at least once

	sent  int // requests
	limit int // of requests; 0 for none
}

func (c *Client) newAcquire(name string, o AcquireOptions, values context.Context) *acquireOp {
	return &acquireOp{c: c, name: name, opt: o, values: values, owner: lockitem.Owner(c.id, randomID())}
}

// step sends one request that fits v and returns what is known afterwards. On success
// op.won is set. With an error the view is as before, unless op.fatal says otherwise.
func (op *acquireOp) step(ctx context.Context, v view) (view, error) {
	if v.paused && !op.seen {
		v = view{} // an earlier call's knowledge: it may have been resumed since
	}
	now := op.c.opt.clock.read().at
	_, _, asked := op.c.server.now(now)
	if !asked || (v.kind == viewHeld && (v.hearsay || !v.dead(now))) {
		return op.look(ctx, v)
	}
	if v.paused {
		return v, nil
	}
	return op.write(ctx, v)
}

// look reads the item.
func (op *acquireOp) look(ctx context.Context, v view) (view, error) {
	op.sent++
	a := op.c.read(ctx, op.name, requestTimeout(op.opt.LeaseDuration))
	if a.err != nil {
		return v, op.note(a)
	}
	op.answered()
	if own, ok := op.tried.find(a.item); ok && !a.item.Released {
		op.c.opt.Observer.recovered("acquire", op.name)
		return v, op.win(own, a)
	}
	return op.learn(ctx, a), nil
}

// write sends one acquiring write by the state in v.
func (op *acquireOp) write(ctx context.Context, v view) (view, error) {
	composed := op.c.compose()
	now, known, _ := op.c.server.now(composed.at)
	at := attempt{
		rvn: newRVN(), owner: op.owner, token: now.UnixMicro(),
		lease: window{from: composed, trust: trustOf(op.opt.LeaseDuration)},
	}
	// Above what the lock had, and above older tries: of those that come late the one
	// that was applied must stay the last.
	at.token = max(at.token, op.tried.topToken()+1)
	if v.version.HasToken {
		at.token = max(at.token, v.version.Token+1)
	}
	if at.token > lockitem.MaxToken {
		return v, fmt.Errorf("%w: its fencing token leaves no larger one", ErrMalformed)
	}
	g := op.c.grant(at, op.opt, now, known)
	name, e := "acquire", lockitem.Expr{}
	switch v.kind {
	case viewReleased:
		e = lockitem.AcquireReleased(v.version, g)
	case viewHeld:
		name, e = "take over", lockitem.Takeover(v.version, g)
	default:
		e = lockitem.AcquireUnknown(op.c.layout, g)
	}
	op.wrote = true
	op.sent++
	a := op.c.update(ctx, name, op.name, composed, requestTimeout(op.opt.LeaseDuration), e)
	switch a.fail {
	case failNone:
		op.answered()
		return v, op.win(at, a)
	case failRefused:
		op.answered()
		if a.err != nil {
			return v, op.note(a)
		}
		if own, ok := op.tried.find(a.item); ok {
			op.c.opt.Observer.recovered(name, op.name)
			return v, op.win(own, a)
		}
		return op.learn(ctx, a), nil
	case failUnknown:
		op.tried = append(op.tried, at)
	}
	return v, op.note(a)
}

// win makes the lease of an attempt that was applied. One that took longer than the
// trust window is no lease any more: it is freed like an abandoned one.
func (op *acquireOp) win(at attempt, a answer) error {
	if a.err != nil || at.lease.remaining(a.received) <= 0 {
		op.tried = append(op.tried, at)
		op.abandon()
		if a.err != nil {
			return a.err
		}
		return fmt.Errorf("lockclient: the acquire took longer than its lease: %w", errRequestTimeout)
	}
	l := op.c.newLease(op.values, op.name, at, op.opt, a.item)
	if l == nil {
		op.tried = append(op.tried, at)
		op.abandon()
		return ErrClosed
	}
	// Tries before this one have lower tokens and can never be applied any more. A later
	// one whose answer is still missing could take the lock when it is free again, so the
	// lease's release lifts the token above it. It is remembered too, to be freed should
	// it show up all the same: the lease may be lost.
	op.c.mu.Lock()
	l.s.abandonedBy(op.tried.above(at.token))
	op.c.mu.Unlock()
	l.setFloor(op.tried.topToken())
	op.tried = nil
	op.won = l
	return nil
}

// answered notes that the table is there and the signing clock right.
func (op *acquireOp) answered() { op.seen, op.skewed = true, false }

// failedRequest carries the class of a failure through the operation's error.
type failedRequest struct {
	fail failure
	err  error
}

func (e *failedRequest) Error() string { return e.err.Error() }
func (e *failedRequest) Unwrap() error { return e.err }

func (op *acquireOp) note(a answer) error {
	if a.fail == failNone || a.fail == failRefused {
		return a.err // the item is not a lock, or malformed
	}
	return &failedRequest{fail: a.fail, err: a.err}
}

// fatal says whether err ends the operation, whatever time is left.
func (op *acquireOp) fatal(ctx context.Context, err error) bool {
	var f *failedRequest
	if !errors.As(err, &f) {
		return !errors.Is(err, errRequestTimeout)
	}
	if ctx.Err() != nil {
		return true
	}
	switch f.fail {
	case failPermanent:
		return true
	case failUnsendable:
		return !op.seen
	case failSkew:
		again := op.skewed
		op.skewed = true
		return again
	}
	return false
}

// abandon lets a detached, bounded clean-up see to the writes whose outcome is unknown.
func (op *acquireOp) abandon() {
	if len(op.tried) == 0 {
		return
	}
	tried := op.tried
	op.tried = nil
	op.c.mu.Lock()
	s := op.c.slotFor(op.name)
	s.abandonedBy(tried)
	op.c.settleSlot(s)
	op.c.mu.Unlock()
	op.c.detach(func(ctx context.Context) { op.c.cleanUp(ctx, op.name, tried) })
}

// grant is what an attempt writes.
func (c *Client) grant(at attempt, o AcquireOptions, now time.Time, known bool) lockitem.Grant {
	g := lockitem.Grant{
		Owner: at.owner, RVN: at.rvn, Token: at.token, Label: o.Label, Lease: o.LeaseDuration, Format: c.opt.LeaseFormat,
		Data: o.Data, SetData: o.Data != nil, AcquiredAt: now, TTL: c.ttlAbove(at.token, now.Add(o.LeaseDuration)),
	}
	if known {
		g.LeaseUntil = now.Add(o.LeaseDuration)
	}
	return g
}

// ttl is when an item that was last of use at end may be deleted: never in a table that
// is shared with clients that would carry the attribute on into a live lock, and never
// by this machine's own clock, which may be wrong.
func (c *Client) ttl(end time.Time) time.Time {
	if c.opt.SharedTable || !c.server.dated() {
		return time.Time{}
	}
	return end.Add(c.opt.Retention)
}

// ttlAbove keeps an item for as long as its token is above the server's time.
func (c *Client) ttlAbove(token int64, end time.Time) time.Time {
	if t := time.UnixMicro(token); t.After(end) {
		end = t
	}
	return c.ttl(end)
}

func pausedError(v view) error {
	if v.note == "" {
		return ErrPaused
	}
	return fmt.Errorf("%w: %s", ErrPaused, v.note)
}
