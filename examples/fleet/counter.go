package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
)

// The counters' table has one item for each lock: how many holds have written.
const (
	counterKey   = "id"
	counterValue = "holds"
)

// counters is the resource that the locks protect.
type counters struct {
	db    *dynamodb.Client
	table string
}

// errFenced says that the held check refused a write: the lease does not hold the lock.
var errFenced = errors.New("refused: the lease does not hold the lock")

// add counts one hold of the lease's lock. The held check makes the write commit only
// while the lease holds the lock, however late it arrives.
func (c counters) add(ctx context.Context, l *lockclient.Lease) error {
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		l.HeldCheck(),
		{Update: &types.Update{
			TableName:                 aws.String(c.table),
			Key:                       c.key(l.Name()),
			UpdateExpression:          aws.String("ADD #holds :one"),
			ExpressionAttributeNames:  map[string]string{"#holds": counterValue},
			ExpressionAttributeValues: map[string]types.AttributeValue{":one": &types.AttributeValueMemberN{Value: "1"}},
		}},
	}}
	for {
		_, err := c.db.TransactWriteItems(ctx, in)
		switch reason := checkReason(err); {
		case err == nil:
			return nil
		case reason == "ConditionalCheckFailed":
			return errFenced
		case reason == "TransactionConflict" && sleep(ctx, 20*time.Millisecond):
			continue // it met a renewal of the same lock: nothing was written
		}
		return fmt.Errorf("write to %s: %w", c.table, err)
	}
}

// checkReason is why a transaction was cancelled at the held check, its first action.
func checkReason(err error) string {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) == 0 {
		return ""
	}
	return aws.ToString(cancelled.CancellationReasons[0].Code)
}

func (c counters) key(lock string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{counterKey: &types.AttributeValueMemberS{Value: lock}}
}

// read returns the counter of a lock, 0 when nobody has written yet.
func (c counters) read(ctx context.Context, lock string) (int, error) {
	out, err := c.db.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(c.table), Key: c.key(lock), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, fmt.Errorf("read the counter of %s: %w", lock, err)
	}
	if len(out.Item) == 0 {
		return 0, nil
	}
	n, ok := out.Item[counterValue].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("the counter of %s is no number", lock)
	}
	return strconv.Atoi(n.Value)
}

// create makes the table, without a stream, and waits until it can be used.
func (c counters) create(ctx context.Context) error {
	_, err := c.db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(c.table),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(counterKey), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(counterKey), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		return fmt.Errorf("create table %s: %w", c.table, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(c.db, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 100 * time.Millisecond })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(c.table)}, remoteLimit); err != nil {
		return fmt.Errorf("create table %s: %w", c.table, err)
	}
	return nil
}
