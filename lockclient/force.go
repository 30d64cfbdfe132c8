package lockclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// ForceOptions configure one ForceRelease.
type ForceOptions struct {
	// Now frees the lock at once, without asking its holder. Until the holder learns of it, by
	// its next renewal or by a write that carries its held check, TWO MAY ACT. It is for a
	// holder that is known to be gone.
	Now bool
}

// ForceRelease frees a held lock against its holder's will, or without its knowledge: the act
// of an operator who saw it in info, which came from Inspect or List.
//
// It first marks the lock. A running holder's lease ends with the reason Revoked at its next
// renewal, and its Release frees the lock; Do and RunAsLeader call that when their work has
// returned. ForceRelease waits for it, and frees the lock itself when nothing has changed for
// one whole lease after the mark. So no two act, as with every takeover. When ctx ends before,
// its error is returned and the mark stays: a second call with a fresh Info goes on from there.
//
// The error is ErrChanged when the lock is not in the state any more that info shows: a renewal
// is a change too, so look again and repeat. A lock that info shows as free is left alone. The
// lock may be acquired again at any moment after: see Pause.
func (c *Client) ForceRelease(ctx context.Context, info Info, optFns ...func(*ForceOptions)) error {
	var o ForceOptions
	for _, fn := range optFns {
		fn(&o)
	}
	return c.asOperator(ctx, "force release", info.Name, func(ctx context.Context) error {
		switch {
		case info.Free:
			return nil
		case info.version.RVN == "":
			return fmt.Errorf("%w: the Info does not come from Inspect or List", ErrInvalidOption)
		case o.Now:
			return c.revoke(ctx, info)
		}
		return c.askToStop(ctx, info)
	})
}

// revoke frees the lock in the state that info shows.
func (c *Client) revoke(ctx context.Context, info Info) error {
	a, ok, err := c.operate(ctx, "force release", info.Name, func(rvn string, now time.Time) lockitem.Expr {
		t := lockitem.Touch{RVN: rvn}
		if !info.Paused {
			t.TTL = c.ttlAbove(info.Token, now)
		}
		return lockitem.Revoke(info.version, t)
	})
	if err != nil {
		return err
	}
	c.infoOf(info.Name, a)
	if !ok {
		return ErrChanged
	}
	return nil
}

// askToStop marks the lock, unless it is, and sees to it that it becomes free.
func (c *Client) askToStop(ctx context.Context, info Info) error {
	shown := info
	if info.Marked {
		a, err := c.readSurely(ctx, info.Name)
		if err != nil {
			return err
		}
		if info = c.infoOf(info.Name, a); info.Free {
			return nil
		}
		if info.version != shown.version {
			return ErrChanged
		}
	} else {
		lease := min(info.Lease, c.opt.MaxLease)
		a, ok, err := c.operate(ctx, "mark", info.Name, func(rvn string, now time.Time) lockitem.Expr {
			return lockitem.Mark(info.version, now.Add(lease), rvn)
		})
		if err != nil {
			return err
		}
		if info = c.infoOf(info.Name, a); !ok {
			return ErrChanged
		}
	}
	return c.awaitStop(ctx, info)
}

// awaitStop waits until the marked lock has been freed, and frees it itself when its holder
// left it unchanged for a whole lease.
func (c *Client) awaitStop(ctx context.Context, info Info) error {
	for marked := info; ; {
		lease := min(info.Lease, c.opt.MaxLease)
		if info.ObservedFor >= lease {
			err := c.revoke(ctx, info)
			if !errors.Is(err, ErrChanged) {
				return err
			}
		} else if !sleep(ctx, min(c.opt.PollInterval, lease-info.ObservedFor)) {
			return withContextError(ctx, context.Cause(ctx))
		}
		a, err := c.readSurely(ctx, info.Name)
		if err != nil {
			return err
		}
		info = c.infoOf(info.Name, a)
		switch {
		case info.Free || info.Token != marked.Token || info.Holder != marked.Holder:
			return nil // it was free meanwhile
		case !info.Marked:
			return ErrChanged // a foreign client overwrote the mark
		}
	}
}
