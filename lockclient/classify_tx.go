package lockclient

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// TransactionVerdict is what an error of TransactWriteItems means for its caller.
type TransactionVerdict uint8

// The verdicts.
const (
	TransactionApplied  TransactionVerdict = iota // there was no error
	TransactionLost                               // a held check failed: the lease does not hold the lock
	TransactionRetry                              // nothing was applied; it met another write, or was throttled: send it again
	TransactionRejected                           // nothing was applied; one of the caller's own actions was refused
	TransactionFailed                             // not a cancelled transaction: nothing is known but the error
)

// ActionError is the first of the caller's own actions for which a transaction was cancelled.
type ActionError struct {
	Index   int                             // among the caller's actions, without the held checks
	Code    string                          // the service's: "ConditionalCheckFailed", "ValidationError" …
	Message string                          // the service's; may be empty
	Item    map[string]types.AttributeValue // the item as it was, where the action asked for it
	Err     error                           // the *types.TransactionCanceledException
}

func (e *ActionError) Error() string {
	text := fmt.Sprintf("lockclient: action %d of the transaction was refused: %s", e.Index, e.Code)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

func (e *ActionError) Unwrap() error { return e.Err }

// ClassifyTransaction tells what err means, which came from a TransactWriteItems whose first
// actions were the held checks of leases, in this order. With TransactionLost the error is
// ErrLost (or ErrReleased for a lease that its holder released), and the lease learns of it:
// it ends as soon as a read has confirmed it. With TransactionRejected it is an *ActionError.
// Otherwise it is err. It waits for nothing.
func ClassifyTransaction(err error, leases ...*Lease) (TransactionVerdict, error) {
	r := readCancellation(err, leases)
	if r.verdict == TransactionLost && r.lease.begin() {
		go func() {
			defer r.lease.c.work.Done()
			r.lease.confirmLoss(context.Background())
		}()
	}
	return r.verdict, r.err
}

// cancellation is how a transaction ended.
type cancellation struct {
	verdict TransactionVerdict
	lease   *Lease // whose check failed
	err     error
}

// readCancellation goes by the reasons, which stand in the order of the actions. A failed
// check outweighs a refused action, and that outweighs what would pass by itself.
func readCancellation(err error, leases []*Lease) cancellation {
	if err == nil {
		return cancellation{verdict: TransactionApplied}
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		if isConflict(err) {
			return cancellation{verdict: TransactionRetry, err: err}
		}
		return cancellation{verdict: TransactionFailed, err: err}
	}
	reasons := canceled.CancellationReasons
	for i, l := range leases {
		if i < len(reasons) && aws.ToString(reasons[i].Code) == reasonCondition {
			return cancellation{verdict: TransactionLost, lease: l, err: l.lossBy(reasons[i], err)}
		}
	}
	retry := false
	for i, r := range reasons {
		switch code := aws.ToString(r.Code); code {
		case "", "None":
		case reasonConflict, reasonThrottled, reasonThroughput:
			retry = true
		default:
			return cancellation{verdict: TransactionRejected, err: &ActionError{
				Index: i - len(leases), Code: code, Message: aws.ToString(r.Message), Item: r.Item, Err: err,
			}}
		}
	}
	if retry {
		return cancellation{verdict: TransactionRetry, err: err}
	}
	return cancellation{verdict: TransactionFailed, err: err}
}

// The codes of a cancellation's reasons that are not the caller's affair.
const (
	reasonCondition  = "ConditionalCheckFailed"
	reasonConflict   = "TransactionConflict"
	reasonThrottled  = "ThrottlingError"
	reasonThroughput = "ProvisionedThroughputExceeded"
)

// isConflict reports an error that is not a cancellation and says that another transaction,
// or an earlier attempt of this one, is under way.
func isConflict(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && classifyAPI(api, err) == failConflict
}

// classifyCanceled is the class of a cancelled transaction as a request.
func classifyCanceled(canceled *types.TransactionCanceledException) failure {
	fail := failNone
	for _, r := range canceled.CancellationReasons {
		switch aws.ToString(r.Code) {
		case "", "None":
		case reasonCondition:
			return failRefused
		case reasonConflict:
			if fail == failNone {
				fail = failConflict
			}
		case reasonThrottled, reasonThroughput:
			if fail == failNone || fail == failConflict {
				fail = failThrottled
			}
		default:
			fail = failPermanent
		}
	}
	if fail == failNone {
		return failPermanent
	}
	return fail
}

// lossBy is the error of a held check that failed, by the item that it found.
func (l *Lease) lossBy(r types.CancellationReason, err error) error {
	if end := l.ended.Load(); end != nil {
		return errors.Join(end.cause, err)
	}
	lost := l.lostTo(nil)
	if len(r.Item) > 0 {
		lost = &LostError{Name: l.name, Token: l.token, Reason: TakenOver}
		if it, derr := decode(r.Item); derr == nil {
			if found := l.lostTo(it); found != nil {
				lost = found
			}
		}
	}
	return errors.Join(lost, err)
}

// confirmLoss reads the lock, once, after a held check of the lease failed, and ends the
// lease when another has the lock. It reports whether the item still shows the lease's hold.
func (l *Lease) confirmLoss(ctx context.Context) (holds bool) {
	ctx, done := l.c.untilOver(ctx)
	defer done()
	a := l.c.read(ctx, l.name, requestTimeout(l.lease))
	if a.err != nil {
		return false
	}
	lost := l.lostTo(a.item)
	if lost == nil {
		return true
	}
	l.end(lost)
	return false
}

// begin adds to the client's work, and reports whether the client is still open.
func (l *Lease) begin() bool { return l.c.begin() == nil }

// untilOver ends ctx when Close is done or gives up waiting.
func (c *Client) untilOver(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	return ctx, func() { stop(); cancel(nil) }
}
