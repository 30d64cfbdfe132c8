package lockclient

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// wait sends nothing. It returns when there is a reason to look again, with g.wake set,
// and says whether the look has to read before it may write.
func (g *campaign) wait(ctx context.Context) (mustRead bool, err error) {
	g.c.opt.Observer.waiting(g.s.name)
	g.heard = time.Now()
	jitter := rand.Float64()
	quiet := g.quietTime()
	var events <-chan struct{}
	if g.watch != nil {
		events = g.watch.C()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		at, wake := g.nextTimer(jitter, quiet)
		timer.Reset(time.Until(at))
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-g.w.wake:
			if _, err := g.current(); err != nil {
				return false, err
			}
			// A write of this client's own, such as a clean-up, changed the lock.
			return true, g.woke(WakeBaton)
		case <-timer.C:
			return true, g.woke(wake)
		case <-events:
			ch, ok := g.watch.Latest()
			if !ok {
				continue
			}
			if ch.Kind == lockevent.Resync {
				g.checkReady(ctx)
				return true, g.woke(WakeResync)
			}
			switch g.hear(ch) {
			case verdictFree:
				return g.spreadOut(ctx), g.woke(WakeEvent)
			case verdictLook:
				return true, g.woke(WakeEvent)
			}
		}
	}
}

func (g *campaign) woke(by Wake) error {
	g.wake = by
	g.c.opt.Observer.woke(g.s.name, by)
	return nil
}

// quietTime is how long the contender goes without a look while it hears nothing.
func (g *campaign) quietTime() time.Duration {
	if g.ready {
		return g.c.opt.Fallback
	}
	// ± 20 %, so that pollers which began together drift apart.
	return time.Duration(float64(g.c.opt.PollInterval) * (0.8 + 0.4*rand.Float64()))
}

// nextTimer is the next instant at which the contender looks without being told to.
// jitter delays the end of an observed lease by up to 5 % of it, so that a stalled
// notifier does not make everybody read at once.
func (g *campaign) nextTimer(jitter float64, quiet time.Duration) (time.Time, Wake) {
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	at, wake := g.heard.Add(quiet), WakeFallback
	if !g.ready {
		wake = WakePoll
	}
	v := g.s.view
	switch {
	case v.kind == viewHeld:
		if end := v.expiry().Add(time.Duration(jitter * float64(v.lease) / 20)); end.Before(at) {
			at, wake = end, WakeExpiry
		}
	case v.kind == viewReleased && v.version.RVN == g.s.standRVN:
		if g.s.standTill.Before(at) {
			at, wake = g.s.standTill, WakeBaton
		}
	}
	return at, wake
}
