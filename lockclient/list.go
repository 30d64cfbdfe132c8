package lockclient

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockitem"
)

// List gives the locks whose names begin with prefix, all of them for "", in no order, free
// ones too as long as their items are kept. Each page shows a state that was in the table; the
// pages are not of one moment. Items that are no locks are left out; one that is malformed
// comes with its name and an error that is ErrMalformed, and the list goes on. Any other error
// ends it. Info.ObservedFor is zero unless this client has seen the same version before.
//
// It costs a consistent scan of the WHOLE table, whatever the prefix: the service cannot
// search partition keys. That is one read unit for each 4 KB; a thousand items a request. It
// is for operators and not for a program's inner loop.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for s, err := range c.scan(ctx, "list", prefix) {
			if err != nil {
				yield(Info{}, c.wrap("list", "", err))
				return
			}
			info := Info{Name: s.name}
			if s.err == nil {
				info = c.recall(s)
			}
			if !yield(info, c.wrap("list", s.name, s.err)) {
				return
			}
		}
	}
}

// scanned is one item that a scan found.
type scanned struct {
	name string
	item *lockitem.Item
	at   time.Time
	err  error // the item is malformed
}

// recall describes an item that a scan found. It learns nothing from it, so that a list of a
// large table does not push out what is known of the locks that are waited for.
func (c *Client) recall(s scanned) Info {
	info := describe(s.name, s.item)
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot := c.locks[s.name]; slot != nil && slot.view.kind == viewHeld && slot.view.version == info.version && !info.Free {
		info.ObservedFor = s.at.Sub(slot.view.firstSeen)
	}
	return info
}

// scan goes through the table, a page at a time. Between the pages nothing is held that Close
// would wait for.
func (c *Client) scan(ctx context.Context, op, prefix string) iter.Seq2[scanned, error] {
	return func(yield func(scanned, error) bool) {
		if !utf8.ValidString(prefix) {
			yield(scanned{}, fmt.Errorf("%w: the prefix is not UTF-8", ErrInvalidName))
			return
		}
		in := lockitem.ListInput(c.layout, c.table, prefix)
		for {
			items, last, at, err := c.page(ctx, op, in)
			if err != nil {
				yield(scanned{}, err)
				return
			}
			for _, m := range items {
				name, ok := c.layout.Name(m)
				if !ok {
					continue
				}
				s := scanned{name: name, at: at}
				if s.item, s.err = decode(m); errors.Is(s.err, ErrNotALock) {
					continue
				}
				if !yield(s, nil) {
					return
				}
			}
			if in.ExclusiveStartKey = last; len(last) == 0 {
				return
			}
		}
	}
}

type attributes = map[string]types.AttributeValue

// page reads one page, in a few tries.
func (c *Client) page(ctx context.Context, op string, in *dynamodb.ScanInput) (items []attributes, last attributes, at time.Time, err error) {
	if err := c.begin(); err != nil {
		return nil, nil, at, err
	}
	defer c.work.Done()
	open, done := c.untilClosed(ctx)
	defer done()
	for n := 0; ; n++ {
		out, a := c.scanOnce(open, op, in)
		switch {
		case a.err == nil:
			return out.Items, out.LastEvaluatedKey, a.received.at, nil
		case a.fail == failPermanent, n+1 == firstLookTries:
			return nil, nil, at, a.err
		case !pause(open, n, a.fail):
			if ctx.Err() == nil {
				return nil, nil, at, ErrClosed
			}
			return nil, nil, at, withContextError(ctx, context.Cause(ctx))
		}
	}
}

func (c *Client) scanOnce(ctx context.Context, op string, in *dynamodb.ScanInput) (*dynamodb.ScanOutput, answer) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxRequestTimeout, errRequestTimeout)
	defer cancel()
	g := &guard{clock: c.opt.clock, composed: c.compose(), limit: maxRequestTimeout}
	out, err := c.db.Scan(ctx, in, g.options)
	if out == nil {
		out = &dynamodb.ScanOutput{}
	}
	return out, c.answered(ctx, op, "", g, dateOf(out.ResultMetadata, err), err)
}
