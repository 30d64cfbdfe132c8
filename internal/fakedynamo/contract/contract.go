package contract

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"
)

// Options names the known differences of the database under test. The zero
// value demands what the service does.
type Options struct {
	// RecordsForNoChange allows a write that changes nothing to leave a stream
	// record.
	RecordsForNoChange bool
	// AnyShardRange allows an open shard without a start or with an end of its
	// range.
	AnyShardRange bool
	// AnyMessage leaves the texts of errors unchecked; only their codes count.
	AnyMessage bool
	// ListsByPosition allows elements of lists that are set behind the end to
	// leave gaps, and those that are removed together to shift each other.
	ListsByPosition bool
	// Lenient allows requests that the service rejects: a condition that compares
	// a path with itself, removing a member of nothing, an unused value in a
	// condition check, enabling TTL twice, an iterator for an unknown shard.
	Lenient bool
	// Wait bounds how long a record may take to appear in the stream, and a table
	// to become active; 0 means 30 s.
	Wait time.Duration
}

// Dynoxide sets the known differences of the emulator dynoxide 1.2.1.
func Dynoxide(o *Options) {
	o.RecordsForNoChange = true
	o.AnyShardRange = true
	o.AnyMessage = true
	o.ListsByPosition = true
	o.Lenient = true
}

// suite is the state that the tests of one run share.
type suite struct {
	Options
	db      Database
	streams Streams
	table   string // with the string key "key" and a stream of both images
}

// Run checks everything with clients of the SDK.
func Run(t *testing.T, db *dynamodb.Client, streams *dynamodbstreams.Client, optFns ...func(*Options)) {
	RunOn(t, db, streams, optFns...)
}

// RunOn is [Run] for anything that has the methods of the clients.
func RunOn(t *testing.T, db Database, streams Streams, optFns ...func(*Options)) {
	s := &suite{db: db, streams: streams}
	for _, fn := range optFns {
		fn(&s.Options)
	}
	if s.Wait == 0 {
		s.Wait = 30 * time.Second
	}
	s.table = s.createTable(t, nil, types.StreamViewTypeNewAndOldImages)
	t.Run("Conditions", s.conditions)
	t.Run("FailedCondition", s.failedCondition)
	t.Run("Updates", s.updates)
	t.Run("RejectedUpdates", s.rejectedUpdates)
	t.Run("ReturnValues", s.returnValues)
	t.Run("Numbers", s.numbers)
	t.Run("PutAndDelete", s.putAndDelete)
	t.Run("Projection", s.projection)
	t.Run("InvalidRequests", s.invalidRequests)
	t.Run("Transactions", s.transactions)
	t.Run("TransactionReasons", s.transactionReasons)
	t.Run("TransactionToken", s.transactionToken)
	t.Run("RejectedTransactions", s.rejectedTransactions)
	t.Run("Tables", s.tables)
	t.Run("TimeToLive", s.timeToLive)
	t.Run("SortKey", s.sortKey)
	t.Run("Scan", s.scan)
	t.Run("StreamRecords", s.streamRecords)
	t.Run("StreamViews", s.streamViews)
	t.Run("StreamIterators", s.streamIterators)
	t.Run("StreamRenewed", s.streamRenewed)
}

// item is short for an item.
type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

func boolean(b bool) types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: b} }

func bin(b string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(b)} }

func list(l ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: l}
}

func object(m item) types.AttributeValue { return &types.AttributeValueMemberM{Value: m} }

func strs(l ...string) types.AttributeValue { return &types.AttributeValueMemberSS{Value: l} }

func nums(l ...string) types.AttributeValue { return &types.AttributeValueMemberNS{Value: l} }

// with gives a copy of an item with a key.
func with(key string, attrs item) item {
	out := maps.Clone(attrs)
	if out == nil {
		out = item{}
	}
	out["key"] = str(key)
	return out
}

func newName() string { return "contract-" + rand.Text() }

// createTable makes a table that lives as long as the test and waits until it
// is active. A sort key is optional, a stream is if view is empty.
func (s *suite) createTable(t *testing.T, sort *types.ScalarAttributeType, view types.StreamViewType) string {
	t.Helper()
	name := newName()
	in := &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
	}
	if sort != nil {
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String("sort"), KeyType: types.KeyTypeRange})
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("sort"), AttributeType: *sort})
	}
	if view != "" {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view}
	}
	out, err := s.db.CreateTable(t.Context(), in)
	if err != nil {
		t.Fatalf("create table: %v", err)
	}
	if out.TableDescription.TableStatus != types.TableStatusCreating {
		t.Errorf("a new table is %s, want CREATING", out.TableDescription.TableStatus)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // which has ended by now
		_, err := s.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(name)})
		if err != nil && !isNotFound(err) {
			t.Errorf("delete table: %v", err)
		}
	})
	s.awaitActive(t, name)
	return name
}

func (s *suite) awaitActive(t *testing.T, table string) {
	t.Helper()
	s.await(t, "the table to be active", func() bool {
		out, err := s.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
		if err != nil {
			t.Fatalf("describe table: %v", err)
		}
		return out.Table.TableStatus == types.TableStatusActive
	})
}

// await polls until done says so.
func (s *suite) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(s.Wait)
	defer deadline.Stop()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-poll.C:
		case <-deadline.C:
			t.Fatalf("waited %v for %s", s.Wait, what)
		}
	}
}

// put stores an item without a condition.
func (s *suite) put(t *testing.T, table string, it item) {
	t.Helper()
	if _, err := s.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: it}); err != nil {
		t.Fatalf("put: %v", err)
	}
}

// get reads an item consistently; nil when it is absent.
func (s *suite) get(t *testing.T, table string, key item) item {
	t.Helper()
	out, err := s.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	return out.Item
}

// wantError checks the code and, as far as the database is strict about it, a
// part of the text.
func (s *suite) wantError(t *testing.T, err error, code, text string) {
	t.Helper()
	var api smithy.APIError
	switch {
	case !errors.As(err, &api):
		t.Errorf("got %v, want an API error %s", err, code)
	case api.ErrorCode() != code:
		t.Errorf("got %s: %s, want %s: …%s…", api.ErrorCode(), api.ErrorMessage(), code, text)
	case !s.AnyMessage && !strings.Contains(api.ErrorMessage(), text):
		t.Errorf("%s says %q, want …%s…", code, api.ErrorMessage(), text)
	}
}

func isNotFound(err error) bool {
	_, ok := errors.AsType[*types.ResourceNotFoundException](err)
	return ok
}
