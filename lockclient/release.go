package lockclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// Release ends the lease and frees the lock, or passes it to the next contender of this
// client. The lease's context ends before anything is sent.
//
// It goes through with an ended ctx too: it takes ctx's values only and is bounded by
// Options.ReleaseTimeout. The error is ErrReleased the second time and ErrLost for a lease
// that was lost before, with nothing sent; ErrLost also when the table shows that the lock
// was no longer this lease's; otherwise the cause, and the lock then runs out with its
// lease. A release never touches a newer hold of the lock. The release of a lease that an
// operator revoked frees the lock too, although its error is ErrLost.
func (l *Lease) Release(ctx context.Context, optFns ...func(*ReleaseOptions)) error {
	var o ReleaseOptions
	for _, fn := range optFns {
		fn(&o)
	}
	if err := errors.Join(l.c.checkData(o.Data), l.c.layout.CheckAttributes(o.Attributes)); err != nil {
		return l.c.wrap("release", l.name, fmt.Errorf("%w: %w", ErrInvalidOption, err))
	}
	l.check() // a lease that has run out was lost, whoever noticed first
	if err := l.c.begin(); err != nil {
		if end := l.ended.Load(); end != nil {
			err = end.cause
		}
		return l.c.wrap("release", l.name, err)
	}
	defer l.c.work.Done()
	if !l.end(ErrReleased) {
		return l.c.wrap("release", l.name, l.yield(context.WithoutCancel(ctx)))
	}
	return l.c.wrap("release", l.name, l.giveBack(context.WithoutCancel(ctx), o))
}

// discard frees a lease that nobody took from the hand that passed it.
func (l *Lease) discard(ctx context.Context) error {
	if !l.end(ErrReleased) {
		return nil
	}
	return l.giveBack(ctx, ReleaseOptions{})
}

// giveBack writes the end of a lease that has ended for its owner: a hand-over to a
// contender of this client, else a release. ctx is detached from the caller's.
func (l *Lease) giveBack(ctx context.Context, o ReleaseOptions) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.c.opt.ReleaseTimeout, errReleaseTimeout)
	defer cancel()
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer context.AfterFunc(l.c.life, func() { abort(context.Cause(l.c.life)) })()
	defer l.c.vacate(l.s, l, view{}) // whatever happens here, the next contender gets to look
	select {
	case <-l.gate: // a renewal on the wire ends with the lease's context
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.gate <- struct{}{} }()

	if next := l.c.successor(l.s, l); next != nil && o.Data == nil && o.Attributes == nil {
		handed, done := l.handOver(ctx, next)
		if handed {
			l.c.opt.Observer.released(ReleasedEvent{Name: l.name, Token: l.token, HandedOver: true})
			return nil
		}
		if done.lost != nil {
			return done.lost
		}
		if done.err == nil { // passed on, to nobody: it was given back all the same
			if !done.gone {
				l.c.freeOrphan(ctx, l.name, done.by, view{})
			}
			l.c.opt.Observer.released(ReleasedEvent{Name: l.name, Token: l.token})
			return nil
		}
	}
	return l.release(ctx, o)
}

func (l *Lease) release(ctx context.Context, o ReleaseOptions) error {
	done := l.send(ctx, &holderOp{
		kind: opRelease, timeout: l.c.giveBackTimeout(l.lease),
		next: func(composed reading) attempt {
			return attempt{rvn: newRVN(), owner: l.owner, token: l.token, lease: window{from: composed}}
		},
		build: func(mine lockitem.Hold, at attempt) lockitem.Expr {
			now, _, _ := l.c.server.now(at.lease.from.at)
			return lockitem.Release(mine, lockitem.Touch{
				RVN: at.rvn, Data: o.Data, SetData: o.Data != nil, Attributes: o.Attributes, TTL: l.ttl(now), Floor: l.floor,
			})
		},
	})
	if done.lost != nil {
		return done.lost
	}
	if done.err != nil {
		return done.err
	}
	var v view // unknown: others may have had the lock since, or the item cannot be read
	if it := done.item; it != nil {
		v = view{kind: viewReleased, version: it.Version(), paused: it.Paused, note: it.PauseNote}
		if it.Paused {
			l.c.keepPause(ctx, l.name, it)
			v = view{}
		}
	}
	l.c.vacate(l.s, l, v)
	l.c.opt.Observer.released(ReleasedEvent{Name: l.name, Token: l.token})
	return nil
}

// ttl is when the item may be deleted that this lease writes: never while it is paused.
func (l *Lease) ttl(end time.Time) time.Time {
	if l.paused {
		return time.Time{}
	}
	return l.c.ttlAbove(l.token, end)
}

// handOver passes the lock to a contender of this client in one write. It reports false
// when the lock is still this lease's to release, or lost.
func (l *Lease) handOver(ctx context.Context, next *waiter) (bool, settled) {
	owner := lockitem.Owner(l.c.id, randomID())
	op := &holderOp{
		kind: opHandOver, timeout: l.c.giveBackTimeout(l.lease),
		next: func(composed reading) attempt {
			return attempt{
				rvn: newRVN(), owner: owner, token: max(l.token, l.floor) + 1,
				lease: window{composed, trustOf(next.opt.LeaseDuration)},
			}
		},
		build: func(mine lockitem.Hold, at attempt) lockitem.Expr {
			now, known, _ := l.c.server.now(at.lease.from.at)
			return lockitem.HandOver(mine, l.c.grant(at, next.opt, now, known))
		},
	}
	done := l.send(ctx, op)
	if done.lost != nil {
		return false, done
	}
	if done.err == nil && done.item != nil && done.by.lease.remaining(l.c.opt.clock.read()) > 0 {
		if heir := l.c.deliver(l.s, next, done); heir != nil {
			return true, done
		}
	}
	if done.err == nil {
		op.tried = append(op.tried, done.by)
	}
	if len(op.tried) > 0 {
		l.c.mu.Lock()
		l.s.abandonedBy(op.tried)
		l.c.mu.Unlock()
		tried := op.tried
		l.c.detach(func(ctx context.Context) { l.c.cleanUp(ctx, l.name, tried) })
	}
	return false, done
}

// deliver makes the lease of a hand-over and gives it to w. A contender that has left
// meanwhile gets nothing, and the lease goes on to the next one or is released. It
// returns nil when the client has closed.
func (c *Client) deliver(s *slot, w *waiter, done settled) *Lease {
	heir := c.newLease(w.values, s.name, done.by, w.opt, done.item)
	if heir == nil {
		return nil
	}
	c.mu.Lock()
	s.handOvers++
	if gone := w.gone; gone {
		c.mu.Unlock()
		c.detach(func(ctx context.Context) { _ = heir.discard(ctx) })
		return heir
	}
	w.lease = heir
	if len(s.queue) > 0 && s.queue[0] == w {
		s.queue = s.queue[1:]
	}
	c.mu.Unlock()
	w.signal()
	return heir
}

// yield frees the lock of a lease that an operator revoked, once, when its holder says by
// Release that its work is over; not before, because until then two would act. It returns
// the cause of the lease's end.
func (l *Lease) yield(ctx context.Context) error {
	cause := l.ended.Load().cause
	var lost *LostError
	if !errors.As(cause, &lost) || lost.Reason != Revoked || !l.yielded.CompareAndSwap(false, true) {
		return cause
	}
	err := l.giveBack(ctx, ReleaseOptions{})
	l.c.mu.Lock()
	s := l.c.slotFor(l.name)
	s.nudge()
	l.c.settleSlot(s)
	l.c.mu.Unlock()
	if err == nil || errors.Is(err, ErrLost) { // it was freed, by this or by another
		return cause
	}
	return errors.Join(cause, err)
}
