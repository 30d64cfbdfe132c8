package lockclient

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// errYield ends a campaign because a lease of this client has the lock now.
var errYield = errors.New("lockclient: a lease of this client holds the lock")

// campaign is the head of a queue at work: look, wait for a wake-up, look again.
type campaign struct {
	c   *Client
	s   *slot
	w   *waiter
	ctx context.Context

	op    *acquireOp
	watch lockevent.Watch
	ready bool // the notifier will tell of every change
	wake  Wake // what led to the present look
	fails int  // requests that failed in a row
	bare  int  // refusals that did not say why
	heard time.Time
}

// run campaigns until the lock is held, the wait ends or another lease of this client
// gets it.
func (g *campaign) run() (*Lease, error) {
	ctx, done := g.c.untilClosed(g.ctx)
	defer done()
	g.op = g.c.newAcquire(g.s.name, g.w.opt, g.w.values)
	select {
	case <-g.w.wake: // what it told is what led here
	default:
	}
	defer func() {
		g.op.abandon()
		if g.watch != nil {
			g.watch.Stop()
		}
	}()
	mustRead := false
	for {
		l, err := g.look(ctx, mustRead)
		if l != nil || err != nil {
			return l, g.failed(ctx, err)
		}
		if mustRead = g.beginWatch(ctx); mustRead {
			continue
		}
		if mustRead, err = g.wait(ctx); err != nil {
			return nil, g.failed(ctx, err)
		}
	}
}

// failed gives an error of the campaign its cause when the wait was ended.
func (g *campaign) failed(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, errYield) || ctx.Err() == nil:
		return err
	case g.ctx.Err() == nil:
		return ErrClosed
	}
	gaveUp := g.c.gaveUp(g.ctx, g.s, g.w)
	var held *HeldError
	if errors.As(gaveUp, &held) || g.op.seen {
		return gaveUp
	}
	return fmt.Errorf("%w; the table did not answer: %w", gaveUp, err)
}

// beginWatch subscribes to the lock before the first wait. It reports whether a read has
// to follow, which closes the gap between the last look and the watch.
func (g *campaign) beginWatch(ctx context.Context) bool {
	if !g.willWatch() {
		return false
	}
	g.watch = g.c.opt.Notifier.Watch(g.s.name)
	g.checkReady(ctx)
	// While the notifier is not ready its resync, or the poll, brings the next read; a
	// contender that has not seen the table yet looks at once all the same.
	return g.ready || !g.op.seen
}

// checkReady asks the notifier, for a bounded time, whether it is live.
func (g *campaign) checkReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, g.c.opt.ReadyWait)
	defer cancel()
	err := g.c.opt.Notifier.Ready(ctx, g.watch)
	if g.ready = err == nil; !g.ready {
		g.c.opt.Logger.Debug("notifier is not ready, polling", "lock", g.s.name, "error", err)
	}
}

// look sends requests until the lock is held (a lease), or known to be held by another
// (nil, nil).
func (g *campaign) look(ctx context.Context, mustRead bool) (*Lease, error) {
	// Before the look, never after: an event that comes during it must wake again.
	mustRead = g.drain(ctx) || mustRead
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		v, err := g.current()
		if err != nil {
			return nil, err
		}
		if !mustRead && g.mustWait(v) && (g.op.seen || g.willWatch()) {
			return nil, nil // a read comes when the watch is armed
		}
		g.op.wrote = false
		if mustRead {
			v, err = g.op.look(ctx, v)
		} else {
			v, err = g.op.step(ctx, v)
		}
		switch {
		case g.op.won != nil:
			g.raced(false)
			return g.op.won, nil
		case err != nil:
			if err := g.retry(ctx, err); err != nil {
				return nil, err
			}
			continue
		case v.paused:
			return nil, pausedError(v)
		case v.kind == viewHeld:
			g.raced(g.op.wrote)
		case g.op.wrote && v.kind == viewAbsent:
			// Refused, and yet nothing is there: deleted this moment, or an endpoint that
			// does not tell the present state, which must not make a hot loop.
			if g.bare++; g.bare > 1 && !pause(ctx, g.bare, failTransient) {
				return nil, context.Cause(ctx)
			}
		}
		g.fails, mustRead = 0, false
		if g.mustWait(v) {
			return nil, nil
		}
	}
}

// mustWait says that there is nothing to write: a live holder, or others' turn.
func (g *campaign) mustWait(v view) bool {
	return v.kind == viewHeld && !v.dead(time.Now()) || g.standsBack(v)
}

// willWatch says that the watch is still to be begun.
func (g *campaign) willWatch() bool { return g.watch == nil && g.c.opt.Notifier != nil }

// drain empties the mailbox: what it holds is older than the look that follows. It
// reports whether that look has to be a read.
func (g *campaign) drain(ctx context.Context) bool {
	if g.watch == nil {
		return false
	}
	select {
	case <-g.watch.C():
	default:
	}
	ch, ok := g.watch.Latest()
	if ok && ch.Kind == lockevent.Resync {
		g.checkReady(ctx)
		return true
	}
	return ok && g.hear(ch) == verdictLook
}

// current returns the view, or errYield when a lease of this client has the lock.
func (g *campaign) current() (view, error) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if g.s.holder != nil || g.w.lease != nil {
		return view{}, errYield
	}
	return g.s.view, nil
}

// standsBack says that the lock is free by this client's own release and others come
// first for a while.
func (g *campaign) standsBack(v view) bool {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	return v.kind == viewReleased && v.version.RVN == g.s.standRVN && time.Now().Before(g.s.standTill)
}

// raced notes how the look that followed a release ended: with a refused write, or
// without.
func (g *campaign) raced(collided bool) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	switch {
	case g.wake != WakeEvent:
	case collided:
		g.s.lostRace()
	default:
		g.s.noCollision()
	}
}

// retry decides whether a failed request is sent again, and waits before it is.
func (g *campaign) retry(ctx context.Context, err error) error {
	if g.op.fatal(ctx, err) {
		return err
	}
	g.fails++
	if !g.op.seen && g.fails >= firstLookTries {
		return err
	}
	fail := failTransient
	var f *failedRequest
	if errors.As(err, &f) {
		fail = f.fail
	}
	if !pause(ctx, g.fails-1, fail) {
		return err
	}
	return nil
}

func (g *campaign) hear(ch lockevent.Change) verdict {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	g.heard = time.Now()
	if time.Now().After(g.s.standTill) {
		g.s.standRVN = ""
	}
	if g.op.tried.has(ch.RVN) || g.s.lost.has(ch.RVN) {
		return verdictLook // one of our own writes was applied late
	}
	return g.s.hear(ch, g.heard, g.c.opt.MaxLease)
}

// spreadOut waits a random time below the slot's spread before a write that follows a
// release. It reports whether it waited: the state has then to be read again.
func (g *campaign) spreadOut(ctx context.Context) bool {
	g.c.mu.Lock()
	spread := g.s.spread
	g.c.mu.Unlock()
	return spread > 0 && sleep(ctx, rand.N(spread))
}
