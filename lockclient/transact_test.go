package lockclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

const testResource = "resource"

// withResource makes the table that transactions write to.
func (w *world) withResource() { w.createTable(testResource) }

// add counts one in the resource's row.
func add(row string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(testResource), Key: rowKey(row), UpdateExpression: aws.String("ADD #n :one"),
		ExpressionAttributeNames:  map[string]string{"#n": "n"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	}}
}

// create writes a row that must not be there yet.
func create(row string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: aws.String(testResource), Item: rowKey(row), ConditionExpression: aws.String("attribute_not_exists(#k)"),
		ExpressionAttributeNames: map[string]string{"#k": "key"},
	}}
}

func rowKey(row string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: row}}
}

// counted is what add has counted.
func (w *world) counted(row string) int {
	n, ok := w.server.Item(testResource, rowKey(row))["n"].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	v, err := strconv.Atoi(n.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// traffic refuses what meets a transaction on one lock's item, as the service does and the
// fake does not: two requests conflict when they are on the wire together and one of them is
// a transaction. It goes by the fake's latency of four milliseconds.
type traffic struct {
	mu        sync.Mutex
	write     time.Time // when the last update of the lock is over
	transact  time.Time // … the last transaction
	conflicts int       // of transactions
	renewals  int       // … of updates
}

const onTheWire = 4 * time.Millisecond

func (tr *traffic) decide(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	now := time.Now()
	switch r.Op {
	case "TransactWriteItems":
		if now.Before(tr.write) || now.Before(tr.transact) {
			tr.conflicts++
			return fakedynamo.Fault{TransactionConflict: true}
		}
		tr.transact = now.Add(onTheWire)
	case "UpdateItem":
		if now.Before(tr.transact) {
			tr.renewals++
			return fakedynamo.Fault{TransactionConflict: true}
		}
		tr.write = now.Add(onTheWire)
	}
	return fakedynamo.Fault{}
}

func (tr *traffic) counts() (transactions, updates int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.conflicts, tr.renewals
}

// everyMs makes a client renew every few milliseconds.
func everyMs(interval time.Duration) func(*Options) {
	return func(o *Options) {
		o.AllowShortLease, o.LeaseDuration, o.RenewInterval = true, time.Second, interval
		o.clock = &skewedClock{} // the machine's boot-time clock runs on in virtual time
	}
}

// Cases: K1
//
// Raw held checks meet renewals every few milliseconds: both are refused for conflicts, and
// neither costs the lease.
func TestRenewalsAndRawHeldChecksConflictAndGoOn(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a := w.client(everyMs(6 * time.Millisecond))
		l := w.acquire(a, "orders")
		tr := &traffic{}
		w.server.Intercept(tr.decide)
		done := 0
		for range 300 {
			_, err := a.db.TransactWriteItems(w.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{l.HeldCheck(), add("row")}},
				func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
			switch verdict, err := ClassifyTransaction(err, l); verdict {
			case TransactionApplied:
				done++
			case TransactionRetry:
			default:
				t.Fatalf("verdict %d: %v", verdict, err)
			}
			time.Sleep(time.Millisecond)
		}
		if tx, updates := tr.counts(); tx == 0 || updates == 0 {
			t.Errorf("%d conflicts of transactions, %d of renewals: the test shows nothing", tx, updates)
		}
		if l.Err() != nil || done == 0 || w.counted("row") != done {
			t.Errorf("%v, %d done, %d counted", l.Err(), done, w.counted("row"))
		}
	})
}

// Cases: K1, K3
//
// A thousand transactions in 24 goroutines during renewals every 10 ms, with the service's
// conflicts: each is applied once, the renewals are neither starved nor late, no lease is lost.
func TestThousandTransactionsDuringRenewals(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		var renewed, conflicts atomic.Int64
		a := w.client(everyMs(10*time.Millisecond), func(o *Options) {
			o.Observer.Renewed = func(string, int64) { renewed.Add(1) }
			o.Observer.Request = func(e RequestEvent) {
				if e.Op == "transact" && e.Outcome == "conflict" {
					conflicts.Add(1)
				}
			}
		})
		l := w.acquire(a, "orders")
		tr := &traffic{}
		w.server.Intercept(tr.decide)
		start := time.Now()
		var wg sync.WaitGroup
		var least atomic.Int64
		least.Store(int64(time.Hour))
		for g := range 24 {
			wg.Go(func() {
				for i := g; i < 1000; i += 24 {
					if err := l.Transact(w.ctx, add("row")); err != nil {
						t.Error(err)
						return
					}
					least.Store(min(least.Load(), int64(l.Remaining())))
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		tx, updates := tr.counts()
		t.Logf("%v for 1000 transactions, %d conflicts of theirs, %d of %d renewals", took, tx, updates, renewed.Load())
		if n := w.counted("row"); n != 1000 {
			t.Errorf("%d of 1000 were applied", n)
		}
		if l.Err() != nil || time.Duration(least.Load()) < 800*time.Millisecond {
			t.Errorf("%v; the least that remained of the lease was %v", l.Err(), time.Duration(least.Load()))
		}
		if updates != 0 {
			t.Errorf("%d renewals met a transaction through the gate", updates)
		}
		if tx == 0 || int(conflicts.Load()) != tx {
			t.Errorf("%d conflicts, %d of them observed", tx, conflicts.Load())
		}
		if least := int64(took / (20 * time.Millisecond)); renewed.Load() < least {
			t.Errorf("%d renewals, less than %d", renewed.Load(), least)
		}
	})
}

// Negative twin: without the gate renewals meet transactions.
func TestTwinWithoutTheGateRenewalsConflict(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a := w.client(everyMs(10 * time.Millisecond))
		l := w.acquire(a, "orders")
		tr := &traffic{}
		w.server.Intercept(tr.decide)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					op := &transactOp{c: a, caller: w.ctx, leases: []*Lease{l}, timeout: time.Second, start: a.compose()}
					op.in = &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{l.HeldCheck(), add("row")}}
					_, _ = op.send(w.ctx) // no gate
				}
			})
		}
		wg.Wait()
		if _, updates := tr.counts(); updates == 0 {
			t.Error("the twin did not fail")
		}
	})
}

// A figure: transactions at 100 a second against renewals every second.
func TestSteadyTransactionsCostNoLease(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a := w.client(func(o *Options) { o.LeaseDuration, o.clock = 3*time.Second, &skewedClock{} })
		l := w.acquire(a, "orders")
		tr := &traffic{}
		w.server.Intercept(tr.decide)
		var wg sync.WaitGroup
		for range 1500 {
			wg.Go(func() {
				if err := l.Transact(w.ctx, add("row")); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		if l.Err() != nil || w.counted("row") != 1500 {
			t.Errorf("%v, %d counted", l.Err(), w.counted("row"))
		}
	})
}

// Never more than eight at a time, and none while a renewal is on the wire; a transaction
// that hangs keeps a renewal waiting for a bounded time only.
func TestTransactionGate(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a := w.client()
		l := w.acquire(a, "orders")
		hold := make(chan struct{})
		var onWire, most atomic.Int64
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			if r.Op != "TransactWriteItems" {
				return fakedynamo.Fault{}
			}
			most.Store(max(most.Load(), onWire.Add(1)))
			return fakedynamo.Fault{Hold: hold}
		})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := l.Transact(w.ctx, add("row")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if most.Load() != maxTransactions {
			t.Errorf("%d on the wire", most.Load())
		}
		start := time.Now()
		if err := l.Renew(w.ctx, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < maxGateWait || took > maxGateWait+10*time.Millisecond {
			t.Errorf("the renewal took %v", took)
		}
		renewal := make(chan struct{})
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			if r.Op == "UpdateItem" {
				return fakedynamo.Fault{Hold: renewal}
			}
			onWire.Add(1)
			return fakedynamo.Fault{}
		})
		onWire.Store(0)
		wg.Go(func() { _ = l.Renew(w.ctx, nil) })
		synctest.Wait()
		close(hold) // eight end, and twelve wait for the renewal
		time.Sleep(500 * time.Millisecond)
		if onWire.Load() != 0 {
			t.Errorf("%d were sent during a renewal", onWire.Load())
		}
		close(renewal)
		wg.Wait()
		if n := w.counted("row"); n != 20 {
			t.Errorf("%d were applied", n)
		}
	})
}

// Cases: K2
//
// Reasons are told apart by their index.
func TestTransactionReasons(t *testing.T) {
	canceled := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, c := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(c)})
		}
		return fmt.Errorf("operation error: %w", e)
	}
	for _, tc := range []struct {
		name  string
		err   error
		want  TransactionVerdict
		index int
	}{
		{"applied", nil, TransactionApplied, 0},
		{"our check", canceled("ConditionalCheckFailed", "None", "None"), TransactionLost, 0},
		{"our check and others", canceled("ConditionalCheckFailed", "ConditionalCheckFailed", "TransactionConflict"), TransactionLost, 0},
		{"conflict at our check", canceled("TransactionConflict", "None", "None"), TransactionRetry, 0},
		{"conflict at the caller's", canceled("None", "None", "TransactionConflict"), TransactionRetry, 0},
		{"throttled", canceled("None", "ThrottlingError", "ProvisionedThroughputExceeded"), TransactionRetry, 0},
		{"the caller's first", canceled("None", "ConditionalCheckFailed", "None"), TransactionRejected, 0},
		{"the caller's second", canceled("None", "None", "ConditionalCheckFailed"), TransactionRejected, 1},
		{"the caller's and a conflict", canceled("TransactionConflict", "None", "ValidationError"), TransactionRejected, 1},
		{"no reasons", canceled(), TransactionFailed, 0},
		{"in progress", &types.TransactionInProgressException{}, TransactionRetry, 0},
		{"anything else", errors.New("x"), TransactionFailed, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				l := w.acquire(w.client(), "orders")
				verdict, err := ClassifyTransaction(tc.err, l)
				if verdict != tc.want || (err == nil) != (tc.err == nil) || tc.err != nil && verdict != TransactionRejected && !errors.Is(err, tc.err) {
					t.Errorf("%d, %v", verdict, err)
				}
				var action *ActionError
				if errors.As(err, &action) != (tc.want == TransactionRejected) || action != nil && action.Index != tc.index {
					t.Errorf("%v", err)
				}
				if errors.Is(err, ErrLost) != (tc.want == TransactionLost) {
					t.Errorf("%v", err)
				}
				synctest.Wait()
				time.Sleep(time.Second)
				if l.Err() != nil { // the read shows that it holds: a caller's wrong word costs nothing
					t.Errorf("lost: %v", l.Err())
				}
			})
		})
	}
}

// Cases: K2
//
// A held check that fails ends the lease, whoever sent it; nothing is applied.
func TestFailedHeldCheckEndsTheLease(t *testing.T) {
	for name, send := range map[string]func(w *world, l *Lease) error{
		"Transact": func(w *world, l *Lease) error { return l.Transact(w.ctx, add("row")) },
		"raw": func(w *world, l *Lease) error {
			_, err := l.c.db.TransactWriteItems(w.ctx, &dynamodb.TransactWriteItemsInput{TransactItems: append(HeldChecks(l.Context()), add("row"))})
			verdict, err := ClassifyTransaction(err, l)
			if verdict != TransactionLost {
				return fmt.Errorf("verdict %d: %w", verdict, err)
			}
			time.Sleep(100 * time.Millisecond) // the confirming read
			return err
		},
	} {
		for loss, want := range map[string]Reason{"stolen": TakenOver, "freed": Reaped} {
			t.Run(name+"/"+loss, func(t *testing.T) {
				bubble(t, func(w *world) {
					w.withResource()
					a := w.client()
					l := w.acquire(a, "orders")
					w.steal(l, "other#1", want == Reaped)
					err := send(w, l)
					wantErr(t, err, ErrLost)
					var lost *LostError
					if !errors.As(err, &lost) || lost.Reason != want {
						t.Errorf("%v", err)
					}
					if !errors.Is(l.Err(), ErrLost) || l.Context().Err() == nil || w.counted("row") != 0 {
						t.Errorf("%v, %d counted", l.Err(), w.counted("row"))
					}
					w.server.Requests().Reset()
					wantErr(t, l.Transact(w.ctx, add("row")), ErrLost)
					if w.server.Requests().Total() != 0 {
						t.Error("a lost lease sent something")
					}
				})
			})
		}
	}
}

// Cases: K2
func TestCallersActionKeepsItsIndex(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		l := w.acquire(w.client(), "orders")
		if err := l.Transact(w.ctx, add("row"), create("once")); err != nil {
			t.Fatal(err)
		}
		err := l.Transact(w.ctx, add("row"), create("once"))
		var action *ActionError
		if !errors.As(err, &action) || action.Index != 1 || action.Code != "ConditionalCheckFailed" || errors.Is(err, ErrLost) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("%v", err)
		}
		if l.Err() != nil || w.counted("row") != 1 {
			t.Errorf("%v, %d counted", l.Err(), w.counted("row"))
		}
	})
}

// A transaction whose answers are lost is applied once.
func TestTransactionWithLostAnswersIsAppliedOnce(t *testing.T) {
	for name, f := range map[string]fakedynamo.Fault{
		"500":          {AfterApply: true, Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}},
		"reset":        {AfterApply: true, Reset: true},
		"hangs":        {DropResponse: true},
		"request lost": {DropRequest: true},
		"throttled":    {Error: &fakedynamo.APIError{Code: "ThrottlingException"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.withResource()
				l := w.acquire(w.client(), "orders")
				n := 3
				if f.DropResponse || f.DropRequest {
					n = 2 // each takes a quarter of the lease
				}
				w.fault("TransactWriteItems", n, f)
				if err := l.Transact(w.ctx, add("row")); err != nil {
					t.Error(err)
				}
				if sent := w.requests("TransactWriteItems"); sent != n+1 || w.counted("row") != 1 {
					t.Errorf("%d requests, counted %d", sent, w.counted("row"))
				}
			})
		})
	}
}

// When the outcome cannot be found out the error says so, and when it is known it does not.
func TestUndecidedTransactionSaysSo(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		l := w.acquire(w.client(), "orders")
		w.fault("TransactWriteItems", -1, fakedynamo.Fault{DropResponse: true})
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		wantErr(t, l.Transact(ctx, add("row")), ErrOutcomeUnknown, context.DeadlineExceeded)
		start := time.Now()
		wantErr(t, l.Transact(w.ctx, add("row")), ErrOutcomeUnknown)
		if took := time.Since(start); took < trustOf(l.lease) || took > 2*l.lease {
			t.Errorf("gave up after %v", took)
		}
		// Refused for certain, every time: no attempt is on the wire when the context ends.
		w.server.SetLatency(0)
		w.fault("TransactWriteItems", -1, fakedynamo.Fault{TransactionConflict: true})
		ctx, cancel = context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		err := l.Transact(ctx, add("row"))
		wantErr(t, err, context.DeadlineExceeded)
		var canceled *types.TransactionCanceledException
		if errors.Is(err, ErrOutcomeUnknown) || !errors.As(err, &canceled) || l.Err() != nil {
			t.Errorf("%v, %v", err, l.Err())
		}
		w.server.Intercept(nil)
		w.release(l)
		err = l.Transact(w.ctx, add("row"))
		wantErr(t, err, ErrReleased)
		if w.counted("row") != 2 {
			t.Errorf("counted %d", w.counted("row"))
		}
	})
}

// An attempt that is still on its way cannot be applied once the lock is another's.
func TestLateTransactionIsFenced(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		w.fault("TransactWriteItems", 1, fakedynamo.Fault{ApplyLate: time.Minute})
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		wantErr(t, l.Transact(ctx, add("row")), ErrOutcomeUnknown)
		w.release(l)
		w.acquire(b, "orders")
		time.Sleep(2 * time.Minute)
		if n := w.counted("row"); n != 0 {
			t.Errorf("counted %d", n)
		}
	})
}

// The lease's end during a transaction: the table decides the attempt that is on the wire.
func TestReleaseWaitsForTransactionsUnderWay(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		l := w.acquire(w.client(), "orders")
		w.fault("TransactWriteItems", 1, fakedynamo.Fault{DelayRequest: 50 * time.Millisecond})
		err := make(chan error, 1)
		go func() { err <- l.Transact(w.ctx, add("row")) }()
		synctest.Wait()
		w.release(l)
		if err := <-err; err != nil || w.counted("row") != 1 {
			t.Errorf("%v, counted %d", err, w.counted("row"))
		}
	})
}

func TestTransactionsThatAreRefusedBeforeSending(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a, b := w.client(), w.client()
		l, other := w.acquire(a, "orders"), w.acquire(b, "stock")
		many := make([]types.TransactWriteItem, 100)
		for i := range many {
			many[i] = add(fmt.Sprint("row", i))
		}
		w.server.Requests().Reset()
		for name, err := range map[string]error{
			"101 actions":      l.Transact(w.ctx, many...),
			"another client's": a.Transact(w.ctx, []*Lease{l, other}, many[0]),
			"no lease":         a.Transact(w.ctx, nil, many[0]),
			"nil":              a.Transact(w.ctx, []*Lease{nil}, many[0]),
			"twice":            a.Transact(w.ctx, []*Lease{l, l}, many[0]),
		} {
			if !errors.Is(err, ErrInvalidOption) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if w.server.Requests().Total() != 0 {
			t.Error("something was sent")
		}
		if err := l.Transact(w.ctx, many[:99]...); err != nil {
			t.Error(err)
		}
	})
}

// HeldCondition fences a write to the lock's own item.
func TestHeldCondition(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		l := w.acquire(a, "orders")
		write := func() error {
			cond := l.HeldCondition()
			cond.Names["#cursor"] = "cursor"
			cond.Values[":cursor"] = &types.AttributeValueMemberN{Value: "7"}
			_, err := a.db.UpdateItem(w.ctx, &dynamodb.UpdateItemInput{
				TableName: &cond.Table, Key: cond.Key, UpdateExpression: aws.String("SET #cursor = :cursor"),
				ConditionExpression: &cond.Expression, ExpressionAttributeNames: cond.Names, ExpressionAttributeValues: cond.Values,
			})
			return err
		}
		if err := write(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if l.Err() != nil {
			t.Error(l.Err())
		}
		w.release(l)
		var refused *types.ConditionalCheckFailedException
		if err := write(); !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
	})
}
