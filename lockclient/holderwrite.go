package lockclient

import (
	"context"
	"errors"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// holderOp is one write that names a lease's hold: renew, release or hand over. Every
// try is a request of its own with a version of its own.
type holderOp struct {
	kind    holderKind
	timeout time.Duration // of one request
	build   func(lockitem.Hold, attempt) lockitem.Expr
	next    func(composed reading) attempt // what the next try would write
	tried   attempts                       // own tries whose outcome is unknown
}

type holderKind string

const (
	opRenew    holderKind = "renew" // its tries stay the lease's own after the operation
	opRelease  holderKind = "release"
	opHandOver holderKind = "hand over"
)

// settled is how a holderOp ended: applied by the attempt, or lost, or not known.
type settled struct {
	by   attempt
	item *lockitem.Item // nil where it cannot be read
	gone bool           // applied, and others have had the lock since
	lost *LostError
	err  error
}

// send tries until the outcome is known or ctx ends. The caller holds the lease's gate.
//
// A refusal is settled by the version that the item shows: one of this operation's own
// tries (it had been applied, and counts from when it was sent), one of the lease's
// renewals (the hold goes on from there), or a stranger's.
func (l *Lease) send(ctx context.Context, op *holderOp) settled {
	l.transactions.shut(ctx, gateWait(l.lease))
	defer l.transactions.reopen()
	skewed := false
	for n := 0; ; n++ {
		if err := context.Cause(ctx); err != nil {
			return settled{err: err}
		}
		at := op.next(l.c.compose())
		hold := lockitem.Hold{Owner: l.owner, RVN: l.rvn, Token: l.token}
		a := l.c.update(ctx, string(op.kind), l.name, at.lease.from, op.timeout, op.build(hold, at))
		switch a.fail {
		case failNone:
			return settled{by: at, item: a.item}
		case failRefused:
			if done, ok := l.refused(op, a); ok {
				return done
			}
			n = -1
			continue // the hold goes on under another version
		case failUnknown:
			op.tried = append(op.tried, at)
			if op.kind == opRenew {
				l.pending = append(l.pending, at)
			}
		case failPermanent:
			return settled{err: a.err}
		case failSkew:
			if skewed {
				return settled{err: a.err}
			}
			skewed = true
		}
		if op.kind == opRenew {
			l.failed.Store(&a.err)
		}
		if !pause(ctx, n, a.fail) {
			return settled{err: errors.Join(context.Cause(ctx), a.err)}
		}
	}
}

// refused settles a write whose condition did not hold. It reports false when the same
// hold goes on under another version and the write is to be sent again.
func (l *Lease) refused(op *holderOp, a answer) (settled, bool) {
	if a.err != nil { // somebody's write made an item of it that is none of ours
		return settled{lost: &LostError{Name: l.name, Token: l.token, Reason: TakenOver}, err: a.err}, true
	}
	if own, ok := op.tried.find(a.item); ok {
		l.c.opt.Observer.recovered(string(op.kind), l.name)
		return settled{by: own, item: a.item}, true
	}
	lost := l.lostTo(a.item)
	if lost != nil && lost.Reason == Revoked {
		l.rvn = a.item.RVN
		switch op.kind {
		case opRelease:
			lost = nil // it is what the operator asks for
		case opHandOver:
			return settled{err: errRevoked}, true // to be free, and not the next one's
		}
	}
	if lost != nil {
		// Nobody takes a lock from a lease that can still be trusted: a try of this
		// release or hand-over had been applied, and others had the lock since.
		if op.kind != opRenew && len(op.tried) > 0 && l.window.Load().remaining(a.received) > 0 {
			l.c.opt.Observer.recovered(string(op.kind), l.name)
			return settled{by: op.tried[0], gone: true}, true
		}
		return settled{lost: lost, item: a.item}, true
	}
	if op.kind == opHandOver && a.item.Paused {
		return settled{err: pausedError(view{note: a.item.PauseNote})}, true
	}
	if own, ok := l.pending.find(a.item); ok {
		l.c.opt.Observer.recovered("renew", l.name)
		l.extend(own, nil)
	}
	l.rvn, l.seenAt, l.pending = a.item.RVN, a.received.at, nil
	return settled{}, false
}

// errRevoked says that an operator asked for the lock to be freed.
var errRevoked = errors.New("lockclient: an operator asked the holder to stop")

// lostTo says who has the lock instead of l by what the item shows, nil when l has it.
func (l *Lease) lostTo(it *lockitem.Item) *LostError {
	lost := &LostError{Name: l.name, Token: l.token}
	switch {
	case it == nil:
		lost.Reason = Deleted
	case it.Owner != l.owner || it.Token != l.token:
		lost.Reason, lost.By = TakenOver, it.Label
		if lost.By == "" {
			lost.By = it.Owner
		}
	case it.Released:
		lost.Reason = Reaped
	case !it.StopBy.IsZero():
		lost.Reason = Revoked
	default:
		return nil
	}
	return lost
}
