package lockclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// answer is what one request told.
type answer struct {
	fail     failure
	item     *lockitem.Item // after a success the new state, after a refusal the present one; nil: no item
	composed time.Time      // the item is at least as new as this
	received reading
	err      error // set unless fail is failNone or failRefused, and when the item cannot be read
}

// compose is the moment at which a request is put together.
func (c *Client) compose() reading { return c.opt.clock.read() }

// update sends one conditional write, once.
func (c *Client) update(ctx context.Context, op, name string, composed reading, timeout time.Duration, e lockitem.Expr) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errRequestTimeout)
	defer cancel()
	g := &guard{clock: c.opt.clock, composed: composed, limit: timeout}
	out, err := c.db.UpdateItem(ctx, e.UpdateInput(c.table, c.layout.Key(name)), g.options)
	if out == nil {
		out = &dynamodb.UpdateItemOutput{}
	}
	a := c.answered(ctx, op, name, g, dateOf(out.ResultMetadata, err), err)
	switch a.fail {
	case failNone:
		a.item, a.err = decode(out.Attributes)
	case failRefused:
		var refused *types.ConditionalCheckFailedException
		errors.As(err, &refused)
		if len(refused.Item) > 0 {
			a.item, a.err = decode(refused.Item)
		}
	}
	return a
}

// read makes one consistent read, once.
func (c *Client) read(ctx context.Context, name string, timeout time.Duration) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errRequestTimeout)
	defer cancel()
	g := &guard{clock: c.opt.clock, composed: c.compose(), limit: timeout}
	out, err := c.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(c.table), Key: c.layout.Key(name), ConsistentRead: aws.Bool(true),
	}, g.options)
	if out == nil {
		out = &dynamodb.GetItemOutput{}
	}
	a := c.answered(ctx, "read", name, g, dateOf(out.ResultMetadata, err), err)
	if a.fail == failNone && len(out.Item) > 0 {
		a.item, a.err = decode(out.Item)
	}
	return a
}

func (c *Client) answered(ctx context.Context, op, name string, g *guard, date time.Time, err error) answer {
	a := answer{fail: classify(err, g), composed: g.composed.at, received: c.opt.clock.read()}
	if a.fail == failNone || a.fail == failRefused || !date.IsZero() {
		c.server.saw(date, a.received.at)
	}
	outcome := "failed"
	switch {
	case a.fail == failNone:
		outcome = "ok"
	case a.fail == failRefused:
		outcome = "refused"
	case a.fail == failConflict:
		outcome = "conflict"
	case a.fail.maybeApplied():
		outcome = "unknown"
	}
	if a.fail != failNone && a.fail != failRefused {
		a.err = explain(err)
		// The SDK reports only "deadline exceeded"; say which deadline that was.
		if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), errRequestTimeout) {
			a.err = fmt.Errorf("%w: %w", errRequestTimeout, hideDeadline(err))
		}
		if ctx.Err() == nil {
			c.opt.Logger.Debug("request failed", "op", op, "lock", name, "outcome", outcome, "error", a.err)
		}
	}
	c.opt.Observer.request(RequestEvent{Op: op, Name: name, Outcome: outcome, Took: a.received.at.Sub(g.composed.at)})
	return a
}

// hideDeadline keeps the text of a request's own time-out and hides that it came from a
// context: the caller's context has not ended, and errors.Is must not say so.
func hideDeadline(err error) error { return errors.New(err.Error()) }

func decode(m map[string]types.AttributeValue) (*lockitem.Item, error) {
	it, err := lockitem.Decode(m)
	if err != nil {
		return nil, publicItemError(err)
	}
	return &it, nil
}
