package lockclient

import (
	"context"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// Info is what one consistent read showed of a lock: facts and no verdict. Whether a holder
// is alive cannot be read; ObservedFor beyond Lease is the sign that it is not. An Info
// can free nothing.
type Info struct {
	Name   string
	Free   bool          // released, or no item is there
	Holder string        // owner name, unique to the lease that has the lock, or had it last
	Label  string        // what that holder called itself
	Token  int64         // the last fencing token; 0 where there is none
	Lease  time.Duration // how long the holder asked for, as written
	Since  time.Time     // when the lock was acquired by the server's clock; zero where not known
	Data   []byte

	Paused      bool // nobody may acquire the lock
	PauseReason string
	Marked      bool // ForceRelease has asked the holder to stop

	// ObservedFor is how long this client has seen the present version of a held lock
	// unchanged, by its own monotonic clock: zero at its first look.
	ObservedFor time.Duration

	version lockitem.Version
}

// Inspect reads a lock. The error is ErrInvalidName, ErrNotALock, ErrMalformed, ErrNoTable,
// ErrSchema, ErrClosed or the cause; a lock that nobody ever had is no error but free.
func (c *Client) Inspect(ctx context.Context, name string) (Info, error) {
	info, err := c.inspect(ctx, name)
	return info, c.wrap("inspect", name, err)
}

func (c *Client) inspect(ctx context.Context, name string) (Info, error) {
	if err := c.layout.CheckName(name); err != nil {
		return Info{}, publicItemError(err)
	}
	if err := c.begin(); err != nil {
		return Info{}, err
	}
	defer c.work.Done()
	ctx, done := c.untilClosed(ctx)
	defer done()
	a, err := c.readSurely(ctx, name)
	if err != nil {
		return Info{}, err
	}
	return c.infoOf(name, a), nil
}

// readSurely reads the item, in a few tries.
func (c *Client) readSurely(ctx context.Context, name string) (answer, error) {
	for n := 0; ; n++ {
		a := c.read(ctx, name, requestTimeout(c.opt.LeaseDuration))
		switch {
		case a.err == nil:
			return a, nil
		case a.fail == failNone:
			return a, a.err
		case a.fail == failPermanent, n+1 == firstLookTries:
			return a, &failedRequest{fail: a.fail, err: a.err}
		case !pause(ctx, n, a.fail):
			return a, withContextError(ctx, context.Cause(ctx))
		}
	}
}

func (c *Client) infoOf(name string, a answer) Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slotFor(name)
	v := s.observe(a, c.opt.MaxLease)
	if v.kind != viewHeld {
		s.nudge() // a contender here may not know yet
	}
	c.settleSlot(s)
	it := a.item
	if it == nil {
		return Info{Name: name, Free: true}
	}
	info := describe(name, it)
	if v.kind == viewHeld {
		info.ObservedFor = a.received.at.Sub(v.firstSeen)
	}
	return info
}

func describe(name string, it *lockitem.Item) Info {
	return Info{
		Name: name, Free: it.Released, Holder: it.Owner, Label: it.Label, Token: it.Token, Lease: it.Lease,
		Since: it.AcquiredAt, Data: it.Data, Paused: it.Paused, PauseReason: it.PauseNote,
		Marked: !it.Released && !it.StopBy.IsZero(), version: it.Version(),
	}
}
