package lockclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// Lease is the time-bounded right to one lock, from one acquire to its release or loss.
// It renews itself and is never used again after its end. It is safe for concurrent use.
type Lease struct {
	c     *Client
	s     *slot
	name  string
	label string
	owner string
	token int64
	lease time.Duration
	since time.Time // by the server's clock
	opt   AcquireOptions
	outer *Lease // under whose context it was acquired; nil for none

	ctx    context.Context
	cancel context.CancelCauseFunc
	data   atomic.Pointer[[]byte]
	window atomic.Pointer[window]
	ended  atomic.Pointer[endOfLease]
	failed atomic.Pointer[error] // the last failure of a renewal since the last success

	deadline *time.Timer // ends the lease with its trust window
	expiring *time.Timer // nil without OnExpiring

	// renewing ends before the lease does when its owner must not keep it any longer.
	renewing   context.Context
	stopRenews context.CancelFunc
	outlived   atomic.Bool // AcquireOptions.MaxHold has passed

	floor   int64         // tokens of acquires that may be applied late reach up to this; gate
	gate    chan struct{} // holds a token while no write of this lease is on the wire
	rvn     string        // the last version known to be in the table; gate
	pending attempts      // renewals whose outcome is unknown; gate
	seenAt  time.Time     // when that version was first seen; gate
	paused  bool          // an operator paused the lock while this lease has it; gate

	transactions transactGate
	yielded      atomic.Bool // it was freed after an operator had revoked it
}

type endOfLease struct{ cause error }

// newLease makes the lease of an attempt that was applied and starts its renewals. It
// returns nil when the client has closed: the caller frees the lock.
func (c *Client) newLease(values context.Context, name string, at attempt, o AcquireOptions, it *lockitem.Item) *Lease {
	l := &Lease{
		c: c, name: name, label: o.Label, owner: at.owner, token: at.token, lease: o.LeaseDuration,
		since: it.AcquiredAt, opt: o, rvn: at.rvn, seenAt: time.Now(), gate: make(chan struct{}, 1),
	}
	l.outer, _ = LeaseFromContext(values)
	l.data.Store(&it.Data)
	l.window.Store(&at.lease)
	ctx := context.WithValue(context.WithoutCancel(values), leaseKey{}, l)
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.renewing, l.stopRenews = context.WithCancel(l.ctx)
	l.gate <- struct{}{}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		l.stopRenews()
		l.cancel(ErrClosed)
		return nil
	}
	l.s = c.slotFor(name)
	l.s.holder = l
	l.s.standRVN = ""
	if len(l.s.queue) > 0 {
		l.s.queue[0].signal() // a campaign that lost to a TryAcquire of this client
	}
	c.leases[l] = struct{}{}
	if c.ticks == nil {
		c.ticks = make(chan struct{})
		stop := c.ticks
		c.work.Go(func() { c.watchClocks(stop) })
	}
	left := at.lease.remaining(c.opt.clock.read())
	l.deadline = time.AfterFunc(left, l.check)
	if o.OnExpiring != nil {
		l.expiring = time.AfterFunc(left-o.ExpiringBefore, l.warn)
	}
	l.limitHold(o.MaxHold)
	c.work.Go(l.keep)
	return l
}

// setFloor remembers the largest token that an acquire of this lease may still write late.
func (l *Lease) setFloor(token int64) {
	<-l.gate
	l.floor = token
	l.gate <- struct{}{}
}

// Name returns the lock's name.
func (l *Lease) Name() string { return l.name }

// Label returns what the holder calls itself in the item.
func (l *Lease) Label() string { return l.label }

// FencingToken returns the integer that rises with every acquire of this lock, for ever.
// It fits in 53 bits.
func (l *Lease) FencingToken() int64 { return l.token }

// Data returns a copy of the payload: what the last acquire or renewal found or wrote.
func (l *Lease) Data() []byte { return slices.Clone(*l.data.Load()) }

// Context returns a context that ends with the lease: with ErrReleased as its cause after
// Release, with a *LostError after a loss. It ends before another can hold the lock,
// unless an operator or a foreign client takes it by force. It carries the values of
// Acquire's context.
func (l *Lease) Context() context.Context { return l.ctx }

// Done is closed when the lease has ended.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease holds, ErrReleased after its release and a *LostError
// after its loss.
func (l *Lease) Err() error {
	l.check()
	if end := l.ended.Load(); end != nil {
		return end.cause
	}
	return nil
}

// Valid reports whether the lease holds at this moment, by its own clocks: 95 % of the
// lease, counted from before the last successful write was sent. It sends nothing and
// takes no lock. A process may be paused between the answer and its use: writes to
// other systems need the fencing token, writes to DynamoDB the held check.
func (l *Lease) Valid() bool { return l.Remaining() > 0 }

// Remaining returns how long the lease holds without another renewal, zero after its end.
func (l *Lease) Remaining() time.Duration {
	if l.ended.Load() != nil {
		return 0
	}
	return max(0, l.window.Load().remaining(l.c.opt.clock.read()))
}

// describe fills in e with this lease as the holder.
func (l *Lease) describe(e *HeldError) {
	e.Holder, e.Label, e.Since, e.Token = l.owner, l.label, l.since, l.token
}

// end ends the lease once, with its cause, and reports whether this call did.
func (l *Lease) end(cause error) bool {
	if !l.ended.CompareAndSwap(nil, &endOfLease{cause}) {
		return false
	}
	var lost *LostError
	errors.As(cause, &lost)
	c := l.c
	c.mu.Lock() // also waits for newLease to have set the timers
	vacate := lost != nil && !c.closed
	if vacate {
		c.work.Add(1) // before the renewals end, so that Close cannot miss it
	}
	l.deadline.Stop()
	if l.expiring != nil {
		l.expiring.Stop()
	}
	delete(c.leases, l)
	if len(c.leases) == 0 && c.ticks != nil {
		close(c.ticks)
		c.ticks = nil
	}
	c.mu.Unlock()
	l.cancel(cause)
	if lost != nil {
		c.opt.Observer.lost(lost)
		c.opt.Logger.Debug("lease lost", "lock", l.name, "token", l.token, "reason", string(lost.Reason))
	}
	if vacate {
		go l.vacateLost()
	}
	return true
}

// vacateLost lets the next contender of this client look, once no write of the lease is
// on the wire any more.
func (l *Lease) vacateLost() {
	defer l.c.work.Done()
	<-l.gate
	defer func() { l.gate <- struct{}{} }()
	v := view{
		kind: viewHeld, version: lockitem.Version{RVN: l.rvn, Token: l.token, HasToken: true},
		lease: l.lease, firstSeen: l.seenAt, owner: l.owner, label: l.label, since: l.since,
	}
	var lost *LostError
	if errors.As(l.ended.Load().cause, &lost) && lost.Reason != Expired && lost.Reason != Clock {
		v = view{} // somebody changed it: the next contender reads
	}
	l.c.vacate(l.s, l, v)
}

// check ends the lease when one of the clocks says that its window has passed, and sets
// the timer anew otherwise.
func (l *Lease) check() {
	if l.ended.Load() != nil {
		return
	}
	w, now := l.window.Load(), l.c.opt.clock.read()
	reason, over := w.over(now)
	if !over {
		l.rearm(*w, now, false)
		return
	}
	lost := &LostError{Name: l.name, Token: l.token, Reason: reason}
	if err := l.failed.Load(); err != nil {
		lost.Last = *err
	}
	if l.outlived.Load() {
		lost.Last = ErrMaxHold
	}
	l.end(lost)
}

// rearm sets the timers for a window; the warning only where renewed says that the window
// is a new one. A lease that has ended keeps its timers stopped.
func (l *Lease) rearm(w window, now reading, renewed bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if l.ended.Load() != nil {
		return
	}
	left := w.remaining(now)
	l.deadline.Reset(left)
	if renewed && l.expiring != nil {
		l.expiring.Reset(left - l.opt.ExpiringBefore)
	}
}

// warn calls OnExpiring when the window really is about to end.
func (l *Lease) warn() {
	if left := l.Remaining(); left > 0 && left <= l.opt.ExpiringBefore {
		l.opt.OnExpiring(l)
	}
}

// watchClocks looks for jumps of the boot-time or wall clock against the monotonic one,
// which timers cannot notice: a machine that slept, a clock that was set. It makes every
// lease look at its clocks then.
func (c *Client) watchClocks(stop <-chan struct{}) {
	every := min(max(c.opt.LeaseDuration/20, 10*time.Millisecond), time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := c.opt.clock.read()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := c.opt.clock.read()
		mono, boot, wall := now.since(last)
		last = now
		if max(boot, wall)-mono < every/2 {
			continue
		}
		c.mu.Lock()
		leases := make([]*Lease, 0, len(c.leases))
		for l := range c.leases {
			leases = append(leases, l)
		}
		c.mu.Unlock()
		for _, l := range leases {
			l.check()
		}
	}
}

// keep renews the lease until it ends.
func (l *Lease) keep() {
	interval := l.c.renewInterval(l.lease)
	// The first one comes early by up to half, so that leases acquired together do not
	// renew together.
	next := interval/2 + rand.N(interval/2+1)
	for sleep(l.renewing, next) {
		// A renewal by hand may just have done it.
		if since := l.c.opt.clock.read().age(l.window.Load().from); since < interval/2 {
			next = interval - since
			continue
		}
		_ = l.renew(l.renewing, nil, false) // a failure shows in the lease's end
		next = interval - rand.N(interval/5+1)
	}
}

type leaseKey struct{}

// LeaseFromContext returns the lease whose context ctx is, or descends from.
func LeaseFromContext(ctx context.Context) (*Lease, bool) {
	l, ok := ctx.Value(leaseKey{}).(*Lease)
	return l, ok
}
