package lockclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// Renew renews the lease at once and, where data is not nil, writes the payload with it.
// It never overlaps the automatic renewal. It tries until the outcome is known, ctx ends
// or the lease does. The error is ErrReleased or ErrLost for a lease that has ended and
// ErrMaxHold after AcquireOptions.MaxHold (nothing is sent), ErrInvalidOption for data
// beyond MaxData, otherwise the cause; the lease goes on renewing itself after an error
// that is neither ErrLost nor ErrMaxHold.
func (l *Lease) Renew(ctx context.Context, data []byte) error {
	if err := l.Err(); err != nil {
		return l.c.wrap("renew", l.name, err)
	}
	if err := l.c.checkData(data); err != nil {
		return l.c.wrap("renew", l.name, fmt.Errorf("%w: %w", ErrInvalidOption, err))
	}
	if l.outlived.Load() {
		return l.c.wrap("renew", l.name, ErrMaxHold)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	defer stop()
	defer context.AfterFunc(l.renewing, func() {
		if l.outlived.Load() {
			cancel(ErrMaxHold)
		}
	})()
	return l.c.wrap("renew", l.name, l.renew(ctx, data, data != nil))
}

// renew sends renewals until the outcome of one is known or ctx ends.
func (l *Lease) renew(ctx context.Context, data []byte, setData bool) error {
	select {
	case <-l.gate:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { l.gate <- struct{}{} }()
	done := l.send(ctx, &holderOp{
		kind: opRenew, timeout: requestTimeout(l.lease),
		next: func(composed reading) attempt {
			return attempt{rvn: newRVN(), owner: l.owner, token: l.token, lease: window{composed, trustOf(l.lease)}}
		},
		build: func(mine lockitem.Hold, at attempt) lockitem.Expr {
			now, known, _ := l.c.server.now(at.lease.from.at)
			t := lockitem.Touch{
				RVN: at.rvn, Lease: l.lease, Format: l.c.opt.LeaseFormat, Data: data, SetData: setData,
				TTL: l.ttl(now.Add(l.lease)),
			}
			if known {
				t.LeaseUntil = now.Add(l.lease)
			}
			return lockitem.Renew(mine, t)
		},
	})
	switch {
	case done.lost != nil:
		done.lost.Last = done.err
		l.end(done.lost)
		return l.ended.Load().cause
	case done.err != nil:
		l.failed.Store(&done.err)
		if end := l.ended.Load(); end != nil {
			return end.cause
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(done.err, cause) {
			return errors.Join(cause, done.err)
		}
		return done.err
	}
	l.rvn, l.seenAt, l.pending = done.by.rvn, l.c.opt.clock.read().at, nil
	l.extend(done.by, done.item)
	l.failed.Store(nil)
	l.c.opt.Observer.renewed(l.name, l.token)
	return nil
}

// extend counts the lease from an attempt that was applied. The caller holds the gate. The window never shrinks by
// it, and while an outcome is unknown it stays as it was: the smaller of the two.
func (l *Lease) extend(by attempt, it *lockitem.Item) {
	if it != nil {
		l.data.Store(&it.Data)
		l.paused = it.Paused
	}
	now := l.c.opt.clock.read()
	if by.lease.remaining(now) <= l.window.Load().remaining(now) {
		return
	}
	l.window.Store(&by.lease)
	l.rearm(by.lease, now, true)
}
