package lockclient

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// LeaseSet is several leases that were acquired together. Each of them renews itself; the set
// holds while all of them do. It is safe for concurrent use.
type LeaseSet struct {
	c      *Client
	leases []*Lease // by name
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// AcquireAll acquires the locks called names, all or none. It waits for them one after the
// other in the order of their names, whatever order they are given in, so that two callers
// never wait for each other; those that it has are held meanwhile. AcquireOptions apply to
// each lock, but Wait bounds all of it together.
//
// The error is Acquire's for the lock that was not to be had, or ErrLost when one was lost
// while the others were waited for; what had been acquired is released. It is
// ErrInvalidOption for no names or a name that is given twice.
func (c *Client) AcquireAll(ctx context.Context, names []string, optFns ...func(*AcquireOptions)) (*LeaseSet, error) {
	o, err := c.checkAll(names, optFns)
	if err != nil {
		return nil, c.wrap("acquire all", "", err)
	}
	values := ctx
	if o.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Wait, ErrWaitElapsed)
		defer cancel()
		o.Wait = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	set := &LeaseSet{c: c}
	for _, name := range slices.Sorted(slices.Values(names)) {
		l, err := c.Acquire(ctx, name, func(a *AcquireOptions) { *a = o })
		if lost := set.lost(); lost != nil { // which ended ctx too
			err = c.wrap("acquire all", "", lost)
		}
		if l != nil {
			set.leases = append(set.leases, l)
		}
		if err != nil {
			return nil, errors.Join(err, set.undo(values))
		}
		// The next one is acquired under this one: its context carries both.
		ctx = context.WithValue(ctx, leaseKey{}, l)
		defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
	}
	set.ctx, set.cancel = context.WithCancelCause(set.leases[len(set.leases)-1].ctx)
	for _, l := range set.leases {
		context.AfterFunc(l.ctx, func() { set.cancel(context.Cause(l.ctx)) })
	}
	return set, nil
}

func (c *Client) checkAll(names []string, optFns []func(*AcquireOptions)) (AcquireOptions, error) {
	if len(names) == 0 {
		return AcquireOptions{}, fmt.Errorf("%w: no lock names", ErrInvalidOption)
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if err := c.layout.CheckName(name); err != nil {
			return AcquireOptions{}, publicItemError(err)
		}
		if seen[name] {
			return AcquireOptions{}, fmt.Errorf("%w: lock %q is named twice", ErrInvalidOption, name)
		}
		seen[name] = true
	}
	return c.acquireOptions(optFns)
}

// lost returns why one of the leases has ended, nil while all hold.
func (s *LeaseSet) lost() error {
	for _, l := range s.leases {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// undo releases what was acquired for nothing. That a lease was lost meanwhile is no news.
func (s *LeaseSet) undo(ctx context.Context) error {
	err := s.release(ctx)
	if errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) {
		return nil
	}
	return err
}

// release frees the leases in the reverse order of their acquire.
func (s *LeaseSet) release(ctx context.Context) error {
	var errs []error
	for _, l := range slices.Backward(s.leases) {
		errs = append(errs, l.Release(ctx))
	}
	return errors.Join(errs...)
}

// Leases returns the leases in the order of their names.
func (s *LeaseSet) Leases() []*Lease { return slices.Clone(s.leases) }

// Lease returns the lease of the lock called name.
func (s *LeaseSet) Lease(name string) (*Lease, bool) {
	for _, l := range s.leases {
		if l.name == name {
			return l, true
		}
	}
	return nil, false
}

// Context returns a context that ends when the first of the leases does, with its cause. It
// carries the values of AcquireAll's context, and all of the leases: see HeldChecks.
func (s *LeaseSet) Context() context.Context { return s.ctx }

// Done is closed when the first of the leases has ended.
func (s *LeaseSet) Done() <-chan struct{} { return s.ctx.Done() }

// Err returns nil while all leases hold, and otherwise the error of one that does not: a loss
// rather than a release.
func (s *LeaseSet) Err() error {
	var first error
	for _, l := range s.leases {
		switch err := l.Err(); {
		case errors.Is(err, ErrLost):
			return err
		case first == nil:
			first = err
		}
	}
	return first
}

// Valid reports whether all leases hold at this moment: see Lease.Valid.
func (s *LeaseSet) Valid() bool {
	return !slices.ContainsFunc(s.leases, func(l *Lease) bool { return !l.Valid() })
}

// HeldChecks returns the held check of each lease. They are actions of the transaction: of
// the hundred that it may have, and two write units each.
func (s *LeaseSet) HeldChecks() []types.TransactWriteItem {
	checks := make([]types.TransactWriteItem, len(s.leases))
	for i, l := range s.leases {
		checks[i] = l.HeldCheck()
	}
	return checks
}

// Transact sends items in one transaction with the held checks of all leases: see
// Lease.Transact.
func (s *LeaseSet) Transact(ctx context.Context, items ...types.TransactWriteItem) error {
	return s.c.Transact(ctx, s.leases, items...)
}

// Release releases every lease, in the reverse order of their acquire: see Lease.Release. The
// set's context ends before anything is sent. The error has those of the releases, joined.
func (s *LeaseSet) Release(ctx context.Context) error {
	if s.lost() == nil {
		s.cancel(ErrReleased)
	}
	return s.release(ctx)
}
