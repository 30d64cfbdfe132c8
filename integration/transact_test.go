package integration

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
)

// ledger is a table of counters that transactions write to.
type ledger struct {
	b     *bed
	db    *dynamodb.Client
	table string
}

func newLedger(b *bed) ledger {
	b.t.Helper()
	l := ledger{b: b, db: b.db(), table: b.table + "-ledger"}
	_, err := l.db.CreateTable(b.t.Context(), &dynamodb.CreateTableInput{
		TableName: &l.table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (l ledger) key(row string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: row}}
}

func (l ledger) add(row string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &l.table, Key: l.key(row), UpdateExpression: aws.String("ADD #n :one"),
		ExpressionAttributeNames:  map[string]string{"#n": "n"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
	}}
}

// once writes a row that must not be there yet.
func (l ledger) once(row string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &l.table, Item: l.key(row), ConditionExpression: aws.String("attribute_not_exists(#id)"),
		ExpressionAttributeNames: map[string]string{"#id": "id"},
	}}
}

func (l ledger) count(row string) int {
	l.b.t.Helper()
	out, err := l.db.GetItem(l.b.t.Context(), &dynamodb.GetItemInput{TableName: &l.table, Key: l.key(row), ConsistentRead: aws.Bool(true)})
	if err != nil {
		l.b.t.Fatal(err)
	}
	n, ok := out.Item["n"].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	v, err := strconv.Atoi(n.Value)
	if err != nil {
		l.b.t.Fatal(err)
	}
	return v
}

// Cases: K3
//
// Transactions with the held check while the lease renews every few milliseconds, in the
// table's own evaluation of the conditions.
func TestTransactionsDuringRenewals(t *testing.T) {
	b := newBed(t)
	rows := newLedger(b)
	c := b.client(func(o *lockclient.Options) {
		o.LeaseDuration, o.RenewInterval = 3*time.Second, 10*time.Millisecond
	})
	l := hold(t, c, "orders")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if err := l.Transact(ctx, rows.add("row")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := rows.count("row"); n != 200 || l.Err() != nil {
		t.Errorf("%d were applied, lease: %v", n, l.Err())
	}
	release(t, l)
}

// Cases: K2
//
// The emulator's own cancellations: another index is the caller's, the check's is a loss.
func TestTransactionRefusals(t *testing.T) {
	b := newBed(t)
	rows := newLedger(b)
	c, other := b.client(), b.client()
	l := hold(t, c, "orders")
	if err := l.Transact(t.Context(), rows.add("row"), rows.once("mark")); err != nil {
		t.Fatal(err)
	}
	err := l.Transact(t.Context(), rows.add("row"), rows.once("mark"))
	var action *lockclient.ActionError
	if !errors.As(err, &action) || action.Index != 1 || errors.Is(err, lockclient.ErrLost) || l.Err() != nil {
		t.Errorf("%v, lease: %v", err, l.Err())
	}
	info, err := other.Inspect(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.ForceRelease(t.Context(), info, func(o *lockclient.ForceOptions) { o.Now = true }); err != nil {
		t.Fatal(err)
	}
	if err := l.Transact(t.Context(), rows.add("row")); !errors.Is(err, lockclient.ErrLost) {
		t.Errorf("after a forced release: %v", err)
	}
	if !errors.Is(l.Err(), lockclient.ErrLost) || rows.count("row") != 1 {
		t.Errorf("%v, %d counted", l.Err(), rows.count("row"))
	}
}

func TestSetOfLocksInOneTransaction(t *testing.T) {
	b := newBed(t)
	rows := newLedger(b)
	c := b.client()
	s, err := c.AcquireAll(t.Context(), []string{"b", "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Transact(t.Context(), rows.add("row")); err != nil {
		t.Error(err)
	}
	_, err = rows.db.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: append(lockclient.HeldChecks(s.Context()), rows.add("row")),
	})
	if verdict, err := lockclient.ClassifyTransaction(err); verdict != lockclient.TransactionApplied {
		t.Errorf("%v", err)
	}
	if err := s.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Transact(t.Context(), rows.add("row")); !errors.Is(err, lockclient.ErrReleased) || rows.count("row") != 2 {
		t.Errorf("%v, %d counted", err, rows.count("row"))
	}
}

// Cases: H3
//
// What an operator does, on the emulator.
func TestOperatorActs(t *testing.T) {
	b := newBed(t)
	holder, operator := b.client(), b.client()
	l := hold(t, holder, "jobs/1", func(o *lockclient.AcquireOptions) { o.LeaseDuration = 3 * time.Second })
	for i := range 3 {
		release(t, hold(t, holder, fmt.Sprintf("jobs/free-%d", i)))
	}
	release(t, hold(t, holder, "other"))
	var shown lockclient.Info
	found := 0
	for info, err := range operator.List(t.Context(), "jobs/") {
		if err != nil {
			t.Fatal(err)
		}
		if found++; info.Name == l.Name() {
			shown = info
		}
	}
	if found != 4 || shown.Free || shown.Token != l.FencingToken() {
		t.Fatalf("%d found, %+v", found, shown)
	}
	if err := operator.Pause(t.Context(), l.Name(), "maintenance"); err != nil {
		t.Fatal(err)
	}
	if err := operator.ForceRelease(t.Context(), shown); !errors.Is(err, lockclient.ErrChanged) {
		t.Errorf("of what has changed: %v", err)
	}
	go func() {
		<-l.Done()
		_ = l.Release(context.Background()) // its error is the loss
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		info, err := operator.Inspect(ctx, l.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err = operator.ForceRelease(ctx, info); err == nil {
			break
		} else if !errors.Is(err, lockclient.ErrChanged) { // a renewal came in between
			t.Fatal(err)
		}
	}
	var lost *lockclient.LostError
	if !errors.As(l.Err(), &lost) || lost.Reason != lockclient.Revoked {
		t.Errorf("%v", l.Err())
	}
	if _, err := operator.TryAcquire(ctx, l.Name()); !errors.Is(err, lockclient.ErrPaused) {
		t.Errorf("%v", err)
	}
	if err := operator.Resume(ctx, l.Name()); err != nil {
		t.Error(err)
	}
	floor := time.Now().Add(time.Hour).UnixMicro()
	if n, err := operator.RaiseFloor(ctx, "jobs/", floor); err != nil || n != 4 {
		t.Errorf("raised %d, %v", n, err)
	}
	again := hold(t, operator, l.Name())
	if again.FencingToken() <= floor {
		t.Errorf("token %d, floor %d", again.FencingToken(), floor)
	}
	release(t, again)
}
