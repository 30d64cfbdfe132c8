package lockclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// RaiseFloor lifts the fencing token of every lock whose name begins with prefix ("" for all)
// to floor, where it is below, and returns how many it lifted. Every later acquire of those
// gets a larger one.
//
// It is for a table that was restored from a backup, whose tokens are old: choose floor at
// least as large as every token that was ever given out, such as the restore's time in
// microseconds since 1970, before clients use the table. A holder that the table shows loses
// its lease by it, and its lock is free for others one lease later. A lock that has no item in
// the table begins at the server's time in microseconds, whatever floor is; a floor ahead of
// that does not cover it.
//
// It costs what List does, and a write for each lock that it lifts. After an error it can be
// called again. Malformed items are left alone; the error names them, joined, when all others
// are done.
func (c *Client) RaiseFloor(ctx context.Context, prefix string, floor int64) (raised int, err error) {
	const op = "raise floor"
	if floor < 1 || floor >= lockitem.MaxToken {
		return 0, c.wrap(op, "", fmt.Errorf("%w: the floor %d is not between 1 and 2^53", ErrInvalidOption, floor))
	}
	var malformed []error
	for s, err := range c.scan(ctx, op, prefix) {
		switch {
		case err != nil:
			return raised, c.wrap(op, "", err)
		case s.err != nil:
			malformed = append(malformed, c.wrap(op, s.name, s.err))
			continue
		case s.item.HasToken && s.item.Token >= floor:
			continue
		}
		if err := c.raise(ctx, op, s.name, floor); err != nil {
			return raised, err
		}
		raised++
	}
	return raised, errors.Join(malformed...)
}

// raise lifts one lock's token.
func (c *Client) raise(ctx context.Context, op, name string, floor int64) error {
	return c.asOperator(ctx, op, name, func(ctx context.Context) error {
		return c.change(ctx, op, name, func(it *lockitem.Item, rvn string, now time.Time) (lockitem.Expr, bool) {
			switch {
			case it == nil || it.HasToken && it.Token >= floor:
				return lockitem.Expr{}, false
			}
			var ttl time.Time // none on a paused lock
			if !it.Paused {
				ttl = c.ttlAbove(floor, now.Add(min(it.Lease, c.opt.MaxLease)))
			}
			if !it.Released {
				return lockitem.RaiseFloorHeld(it.Version(), floor, rvn, ttl), true
			}
			return lockitem.RaiseFloor(it.Version(), floor, lockitem.Touch{RVN: rvn, TTL: ttl}), true
		})
	})
}
