package lockclient

import "context"

// Locker is what code needs that only wants locks, whatever keeps them: it names no table,
// no item and no option. (*Client).Locker is one; so can a type be that keeps its locks in
// another store. locktest.TestLocker holds each of them to the same contract.
//
// Options are bound where the backend is chosen and results are interfaces, because a
// method with one backend's option or lease type in it could not be another's.
//
// A Locker is safe for concurrent use. Its errors are this package's: ErrHeld, ErrLost,
// ErrReleased, ErrClosed and ErrInvalidName, wrapped or not. An error comes with a nil Hold.
type Locker interface {
	// Acquire waits until it holds the lock. ctx bounds the wait only, never the hold;
	// an error of a wait that ctx ended is ErrHeld and the context's error.
	Acquire(ctx context.Context, name string) (Hold, error)
	// TryAcquire takes the lock if it is free; the error is ErrHeld otherwise.
	TryAcquire(ctx context.Context, name string) (Hold, error)
	// Do runs fn while it holds the lock and releases it before it returns, also when fn
	// panics. fn's context ends with ctx and with the hold. fn gets the hold too, for its
	// fencing token.
	Do(ctx context.Context, name string, fn func(ctx context.Context, h Hold) error) error
	// Close releases every hold and ends every wait with ErrClosed. It is safe to call twice.
	Close(ctx context.Context) error
}

// Hold is one hold of a lock, from its acquire to its release or loss, and never used
// again after. It is safe for concurrent use. The methods mean what they mean for Lease.
type Hold interface {
	Name() string
	FencingToken() int64 // rises with every acquire of the lock, for ever
	Context() context.Context
	Done() <-chan struct{}
	Err() error // nil, then ErrReleased or ErrLost
	Valid() bool
	Release(ctx context.Context) error // ErrReleased or ErrLost when the hold has ended before
}

// Locker returns the client as a Locker whose acquires have these options. The *Lease
// behind a Hold is found with LeaseFromContext and the hold's context. Closing the Locker
// closes the client.
func (c *Client) Locker(optFns ...func(*AcquireOptions)) Locker {
	return locker{c: c, optFns: optFns}
}

type locker struct {
	c      *Client
	optFns []func(*AcquireOptions)
}

func (k locker) Acquire(ctx context.Context, name string) (Hold, error) {
	return asHold(k.c.Acquire(ctx, name, k.optFns...))
}

func (k locker) TryAcquire(ctx context.Context, name string) (Hold, error) {
	return asHold(k.c.TryAcquire(ctx, name, k.optFns...))
}

func (k locker) Do(ctx context.Context, name string, fn func(context.Context, Hold) error) error {
	return k.c.Do(ctx, name, func(ctx context.Context) error {
		l, _ := LeaseFromContext(ctx) // Do has put it there
		return fn(ctx, hold{l})
	}, k.optFns...)
}

func (k locker) Close(ctx context.Context) error { return k.c.Close(ctx) }

// asHold keeps a nil lease from becoming a Hold that is not nil.
func asHold(l *Lease, err error) (Hold, error) {
	if err != nil {
		return nil, err
	}
	return hold{l}, nil
}

// hold is a lease whose Release has no options.
type hold struct{ *Lease }

func (h hold) Release(ctx context.Context) error { return h.Lease.Release(ctx) }

var (
	_ Locker = locker{}
	_ Hold   = hold{}
)
