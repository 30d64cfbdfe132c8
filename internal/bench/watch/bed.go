package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/emulator"
	"github.com/lockstream/lockstream/internal/limiterproxy"
	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/streamwatcher"
)

// bed is a fresh emulator with one lock table, if need be behind a proxy. The emulator
// becomes slow when records pile up, so each measurement has its own.
type bed struct {
	e       *emulator.Emulator
	proxy   *limiterproxy.Proxy // nil: none
	db      *dynamodb.Client
	streams *dynamodbstreams.Client
	serial  atomic.Int64
	table   string
}

func newBed(ctx context.Context, proxied bool, optFns ...func(*limiterproxy.Options)) (*bed, error) {
	e, err := emulator.Open(ctx)
	if err != nil {
		return nil, err
	}
	b := &bed{e: e, table: fmt.Sprintf("locks-%d", time.Now().UnixNano())}
	if err := b.open(ctx, proxied, optFns); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bed) open(ctx context.Context, proxied bool, optFns []func(*limiterproxy.Options)) error {
	var err error
	if b.db, err = b.e.Client(ctx); err != nil {
		return err
	}
	if b.streams, err = b.e.StreamsClient(ctx); err != nil {
		return err
	}
	if proxied {
		if b.proxy, err = limiterproxy.Start(b.e.Endpoint(), b.streams, optFns...); err != nil {
			return err
		}
		at := func(o *dynamodbstreams.Options) { o.BaseEndpoint = aws.String(b.proxy.Endpoint()) }
		if b.streams, err = b.e.StreamsClient(ctx, at); err != nil {
			return err
		}
	}
	_, err = b.db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &b.table,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(lockattr.Key), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(lockattr.Key), AttributeType: types.ScalarAttributeTypeS}},
		BillingMode:          types.BillingModePayPerRequest,
		StreamSpecification:  &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages},
	})
	return err
}

func (b *bed) close() error {
	var err error
	if b.proxy != nil {
		err = b.proxy.Close()
	}
	return errors.Join(err, b.e.Stop())
}

// watcher is a reader of the table; the caller closes it.
func (b *bed) watcher(q time.Duration, optFns ...func(*streamwatcher.Options)) (*streamwatcher.Watcher, error) {
	interval := func(o *streamwatcher.Options) { o.PollInterval = q }
	return streamwatcher.New(b.db, b.streams, b.table, append([]func(*streamwatcher.Options){interval}, optFns...)...)
}

// release writes a free lock with a fresh version, which it returns.
func (b *bed) release(ctx context.Context, name string) (string, error) {
	rvn := fmt.Sprintf("version-%d", b.serial.Add(1))
	_, err := b.db.PutItem(ctx, &dynamodb.PutItemInput{TableName: &b.table, Item: map[string]types.AttributeValue{
		lockattr.Key:                 &types.AttributeValueMemberS{Value: name},
		lockattr.OwnerName:           &types.AttributeValueMemberS{Value: "bench#1"},
		lockattr.LeaseDuration:       &types.AttributeValueMemberS{Value: "20000"},
		lockattr.RecordVersionNumber: &types.AttributeValueMemberS{Value: rvn},
		lockattr.FencingToken:        &types.AttributeValueMemberN{Value: "1"},
		lockattr.IsReleased:          &types.AttributeValueMemberS{Value: "1"},
	}})
	return rvn, err
}
