package lockclient

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ErrOutcomeUnknown says that an attempt of a transaction got no answer, and that it could not
// be found out whether it was applied, or may yet be.
var ErrOutcomeUnknown = errors.New("lockclient: outcome of the transaction is unknown")

const (
	maxActions = 100 // of one transaction, by the service

	// tokenLife is how long a transaction is sent again after an attempt without an answer.
	// The service knows a client request token for ten minutes.
	tokenLife = 9 * time.Minute
)

// Transact sends items in one transaction with this lease's held check: they are applied
// together, and only if the lease holds the lock at that moment.
//
// It is the way to use a held check beside renewals. The service lets transactions that
// contain one item conflict with each other and with every other write to that item; so of
// one lease at most eight are on the wire at a time, fewer while they conflict, and none while
// the lease renews.
// Conflicts that remain, throttling and lost answers are retried, with one client request
// token, so that a transaction whose answer was lost is applied once (the service knows the
// token for ten minutes). Retries end with ctx, with the lease, and when they have gone on
// for the trusted part of a lease.
//
// The check costs two write units. Put one batch of writes behind one check, not one row:
// about 50 to 200 transactions a second are what the service does on one lock.
//
// The error is ErrLost or ErrReleased for a lease that has ended, or that the check showed to
// have lost the lock (nothing was applied, and the lease ends); an *ActionError for the
// caller's action that was refused; ErrInvalidOption before anything is sent, for more than 99
// items; otherwise the cause. It is ErrOutcomeUnknown too when the transaction may have been
// applied.
func (l *Lease) Transact(ctx context.Context, items ...types.TransactWriteItem) error {
	return l.c.wrap("transact", l.name, l.c.transact(ctx, []*Lease{l}, items))
}

// Transact is Lease.Transact with the held checks of several leases, which must all be this
// client's: a check in another table, Region or account than its lock's would prove nothing.
func (c *Client) Transact(ctx context.Context, leases []*Lease, items ...types.TransactWriteItem) error {
	name := ""
	if len(leases) == 1 && leases[0] != nil {
		name = leases[0].name
	}
	return c.wrap("transact", name, c.transact(ctx, leases, items))
}

// transactOp is one transaction, in as many attempts as it takes.
type transactOp struct {
	c       *Client
	caller  context.Context
	leases  []*Lease // by name: so that no two operations wait for each other's gates
	in      *dynamodb.TransactWriteItemsInput
	timeout time.Duration // of one attempt
	start   reading
	unknown reading // when the first attempt without an answer was composed
	unsure  bool    // there was one
}

func (c *Client) transact(ctx context.Context, leases []*Lease, items []types.TransactWriteItem) error {
	if err := c.checkTransaction(leases, items); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidOption, err)
	}
	if err := context.Cause(ctx); err != nil {
		return withContextError(ctx, err)
	}
	op := &transactOp{c: c, leases: slices.Clone(leases), timeout: maxRequestTimeout, start: c.compose()}
	slices.SortFunc(op.leases, func(a, b *Lease) int { return strings.Compare(a.name, b.name) })
	op.in = &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(rand.Text())}
	for _, l := range op.leases {
		op.in.TransactItems = append(op.in.TransactItems, l.HeldCheck())
		op.timeout = min(op.timeout, requestTimeout(l.lease))
	}
	op.in.TransactItems = append(op.in.TransactItems, items...)
	if err := op.ended(); err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	defer c.work.Done()
	op.caller = ctx
	ctx, done := c.untilOver(ctx)
	defer done()
	return op.run(ctx)
}

func (c *Client) checkTransaction(leases []*Lease, items []types.TransactWriteItem) error {
	if len(leases) == 0 {
		return errors.New("a transaction without a lease")
	}
	if n := len(leases) + len(items); n > maxActions {
		return fmt.Errorf("a transaction of %d actions with its held checks: the service takes %d", n, maxActions)
	}
	seen := map[string]bool{}
	for _, l := range leases {
		switch {
		case l == nil:
			return errors.New("a lease is nil")
		case l.c != c:
			return fmt.Errorf("the lease of %q is another client's, for table %q", l.name, l.c.table)
		case seen[l.name]:
			return fmt.Errorf("two leases of %q in one transaction", l.name)
		}
		seen[l.name] = true
	}
	return nil
}

// ended returns why one of the leases has ended, nil while all hold.
func (op *transactOp) ended() error {
	for _, l := range op.leases {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// run sends attempts until the outcome is known or the time is over.
func (op *transactOp) run(ctx context.Context) error {
	skewed := false
	var last error
	for n := 0; ; n++ {
		leave, err := op.enter(ctx, n > 0)
		if err != nil {
			return op.gaveUp(ctx, err, last)
		}
		a, err := op.send(ctx)
		leave(a.fail == failConflict)
		if err == nil {
			return nil
		}
		verdict, err := op.verdict(ctx, a, err)
		switch last = err; {
		case verdict == TransactionLost:
			return err // no copy of an earlier attempt can pass the check any more
		case verdict == TransactionRejected || a.fail == failPermanent || a.fail == failUnsendable || a.fail == failSkew && skewed:
			return op.unsureOf(err)
		}
		skewed = skewed || a.fail == failSkew
		if op.tooLong() || !op.pause(ctx, n, a.fail) {
			return op.gaveUp(ctx, op.ended(), last)
		}
	}
}

// enter passes the gates of all leases.
func (op *transactOp) enter(ctx context.Context, again bool) (leave func(conflict bool), err error) {
	var passed []*Lease
	leave = func(conflict bool) {
		for _, l := range passed {
			l.transactions.leave(conflict)
		}
	}
	for _, l := range op.leases {
		if err := l.transactions.enter(ctx, l.Done(), again); err != nil {
			leave(false)
			if errors.Is(err, errGateEnded) {
				err = l.Err()
			}
			return nil, err
		}
		passed = append(passed, l)
	}
	if err := op.ended(); err != nil {
		leave(false)
		return nil, err
	}
	return leave, nil
}

// send makes one attempt. The end of a lease does not cut it short: the table decides it.
func (op *transactOp) send(ctx context.Context) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, op.timeout, errRequestTimeout)
	defer cancel()
	g := &guard{clock: op.c.opt.clock, composed: op.c.compose(), limit: op.timeout}
	out, err := op.c.db.TransactWriteItems(ctx, op.in, g.options)
	if out == nil {
		out = &dynamodb.TransactWriteItemsOutput{}
	}
	a := op.c.answered(ctx, "transact", op.leases[0].name, g, dateOf(out.ResultMetadata, err), err)
	if a.fail == failUnknown && !op.unsure {
		op.unsure, op.unknown = true, g.composed
	}
	if a.err != nil {
		err = a.err
	}
	return a, err
}

// verdict sorts the failure of an attempt, and lets a lease whose check failed learn of it.
func (op *transactOp) verdict(ctx context.Context, a answer, err error) (TransactionVerdict, error) {
	r := readCancellation(err, op.leases)
	if r.verdict != TransactionLost {
		return r.verdict, r.err
	}
	if r.lease.confirmLoss(context.WithoutCancel(ctx)) {
		// The item shows the hold after all: somebody restored it meanwhile.
		return TransactionRetry, err
	}
	if end := r.lease.Err(); end != nil {
		return TransactionLost, errors.Join(end, err)
	}
	return TransactionLost, r.err // the read failed: the lease runs out by itself
}

// pause waits before the next attempt, and reports whether it may be made.
func (op *transactOp) pause(ctx context.Context, n int, fail failure) bool {
	return pause(ctx, n, fail) && op.ended() == nil
}

// tooLong says that retries have gone on for long enough, or that the service may soon have
// forgotten the token of an attempt that was perhaps applied.
func (op *transactOp) tooLong() bool {
	now := op.c.compose()
	patience := trustOf(op.leases[0].lease)
	for _, l := range op.leases {
		patience = min(patience, trustOf(l.lease))
	}
	return now.age(op.start) >= patience || op.unsure && now.age(op.unknown) >= tokenLife
}

// gaveUp is the error of a transaction that was not decided: why it was given up, and how the
// last attempt failed.
func (op *transactOp) gaveUp(ctx context.Context, ended, last error) error {
	if cause := context.Cause(op.caller); cause != nil {
		ended = withContextError(op.caller, cause)
	} else if ended == nil {
		ended = context.Cause(ctx) // Close gave up waiting
	}
	if ended == nil || last == nil {
		return op.unsureOf(errors.Join(ended, last))
	}
	return op.unsureOf(fmt.Errorf("%w; last attempt: %w", ended, last))
}

// unsureOf adds to err that an attempt without an answer may have been applied, or may yet be.
func (op *transactOp) unsureOf(err error) error {
	if !op.unsure {
		return err
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}
