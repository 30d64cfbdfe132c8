package lockclient

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// following is one loop over Elector.Leaders.
type following struct {
	e       *Elector
	watch   lockevent.Watch // nil without a notifier
	ready   bool
	changed <-chan struct{} // closed when the elector's term changed since the last look

	now   Leader
	told  bool  // of now
	token int64 // of the present leader, or of the last one that gave the lock back

	least    int64 // what is known counts only from this token on …
	mustRead bool  // … or not at all, until the next look
}

// next waits until there is another leader than now.
func (f *following) next(ctx context.Context) error {
	for {
		if f.told {
			freed, err := f.wait(ctx)
			if err != nil {
				return err
			}
			if freed {
				f.now = Leader{}
				return nil
			}
		}
		l, err := f.look(ctx)
		if err != nil {
			return err
		}
		if !f.told || l.ID != f.now.ID {
			f.now, f.told = l, true
			return nil
		}
	}
}

// look asks who leads, through an outage too.
func (f *following) look(ctx context.Context) (Leader, error) {
	for fails := 0; ; fails++ {
		f.changed = f.e.changes()
		l, err := f.e.whoLeads(ctx, f.least, f.mustRead)
		switch {
		case err == nil:
			f.least, f.mustRead = 0, false
			if l.ID != "" {
				f.token = l.Token
			}
			return l, nil
		case ctx.Err() != nil || !isOutage(err) || !pause(ctx, fails, failTransient):
			return Leader{}, err
		}
	}
}

// wait sends nothing. It returns when there is a reason to look again, or to believe
// without a look that the leader gave the lock back.
func (f *following) wait(ctx context.Context) (freed bool, err error) {
	var events <-chan struct{}
	if f.watch != nil {
		events = f.watch.C()
	}
	timer := time.NewTimer(f.quietTime())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-f.e.c.open.Done():
			return false, f.e.c.wrap("lead", f.e.name, ErrClosed)
		case <-f.changed:
			return false, nil
		case <-timer.C:
			return false, nil
		case <-events:
			ch, ok := f.watch.Latest()
			if !ok {
				continue
			}
			if ch.Kind == lockevent.Resync {
				f.checkReady(ctx)
			}
			timer.Reset(f.quietTime())
			switch f.hear(ch) {
			case verdictLook:
				return false, nil
			case verdictFree:
				return true, nil
			}
		}
	}
}

// hear says what an event means for who leads. A token that was given back never leads
// again, and renewals change nothing.
func (f *following) hear(ch lockevent.Change) verdict {
	switch {
	case ch.Kind == lockevent.Renewed && ch.Token == 0 && f.now.Token == 0 && f.now.ID != "":
		return verdictWait // a foreign client's lease has no token
	case ch.Kind == lockevent.Resync, ch.Kind == lockevent.Deleted, ch.Kind == lockevent.Unknown, ch.Token == 0:
		f.mustRead = true
		return verdictLook
	case ch.Held && ch.Token > f.token:
		f.least = ch.Token
		return verdictLook
	case ch.Held || ch.Token < f.token || f.now.ID == "":
		return verdictWait
	}
	f.token, f.least = ch.Token, ch.Token+1
	return verdictFree
}

// checkReady asks the notifier, for a bounded time, whether it is live.
func (f *following) checkReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.e.c.opt.ReadyWait)
	defer cancel()
	f.ready = f.e.c.opt.Notifier.Ready(ctx, f.watch) == nil
}

// quietTime is how long to go without a look while nothing is heard.
func (f *following) quietTime() time.Duration {
	if f.ready {
		return f.e.c.opt.Fallback
	}
	return time.Duration(float64(f.e.c.opt.PollInterval) * (0.8 + 0.4*rand.Float64()))
}
