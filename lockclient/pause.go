package lockclient

import (
	"context"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// Pause lets nobody acquire the lock until Resume: Acquire and TryAcquire return ErrPaused
// with the reason, also those that wait, as soon as they look. A holder keeps the lock and
// renews it until it releases it; ForceRelease works on a paused lock. A lock that nobody had
// yet can be paused. A second Pause replaces the reason. Clients other than Lockstream do not
// see the pause.
func (c *Client) Pause(ctx context.Context, name, reason string) error {
	return c.asOperator(ctx, "pause", name, func(ctx context.Context) error {
		return c.change(ctx, "pause", name, func(it *lockitem.Item, rvn string, now time.Time) (lockitem.Expr, bool) {
			if it == nil {
				return lockitem.PauseAbsent(c.layout, max(0, now.UnixMicro()), reason, rvn), true
			}
			return lockitem.Pause(it.Version(), reason, rvn), !it.Paused || it.PauseNote != reason
		})
	})
}

// Resume ends a pause. A lock that is not paused is left alone.
func (c *Client) Resume(ctx context.Context, name string) error {
	return c.asOperator(ctx, "resume", name, func(ctx context.Context) error {
		return c.change(ctx, "resume", name, func(it *lockitem.Item, rvn string, now time.Time) (lockitem.Expr, bool) {
			if it == nil || !it.Paused {
				return lockitem.Expr{}, false
			}
			end := now
			if !it.Released {
				end = now.Add(min(it.Lease, c.opt.MaxLease))
			}
			return lockitem.Resume(it.Version(), lockitem.Touch{RVN: rvn, TTL: c.ttlAbove(it.Token, end)}), true
		})
	})
}
