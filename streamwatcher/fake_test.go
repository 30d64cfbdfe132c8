package streamwatcher

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
)

// fake is a table with a stream behind the watcher's two interfaces, scriptable call by
// call. It runs in a synctest bubble and holds no mutex while it waits.
type fake struct {
	mu     sync.Mutex
	table  *dbtypes.TableDescription // nil: there is no table
	status types.StreamStatus
	shards []*fakeShard
	seq    int
	calls  []fakeCall
	made   map[string]int // calls by operation

	fault func(c fakeCall) error // decides the fate of a call; errHang: it never answers

	latency      time.Duration
	age          time.Duration // server clock less bubble clock
	noTimestamp  bool
	ignoreFilter bool
	refuseFilter bool
	lazyLatest   bool
	endOnOpen    bool // EndingSequenceNumber on open shards too
	pageShards   int
	pageRecords  int
	shuffle      bool
	emptyPages   int           // before each read from the beginning shows anything
	iteratorLife time.Duration // 0: for ever
}

type fakeShard struct {
	id, parent string
	records    []types.Record
	trimmed    int // records before this index are gone
	closed     bool
	gone       bool
	listedAt   time.Time
	removed    bool // from the lists
}

type fakeCall struct {
	op    string
	shard string
	kind  types.ShardIteratorType // of GetShardIterator
	n     int                     // how many calls of this op there were before
	at    time.Time
}

var errHang = fmt.Errorf("hang")

func apiError(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: code}
}

const fakeARN = "arn:aws:dynamodb:eu-north-1:000000000000:table/locks/stream/1"

func newFake(shards ...*fakeShard) *fake {
	f := &fake{
		status: types.StreamStatusEnabled, latency: 2 * time.Millisecond,
		age: 30 * 365 * 24 * time.Hour, pageShards: 100, pageRecords: 1000,
		shards: shards, seq: 100, made: make(map[string]int),
	}
	f.enable(fakeARN, dbtypes.StreamViewTypeNewAndOldImages)
	return f
}

func (f *fake) enable(arn string, view dbtypes.StreamViewType) {
	f.table = &dbtypes.TableDescription{
		LatestStreamArn:     aws.String(arn),
		StreamSpecification: &dbtypes.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: view},
	}
	f.status = types.StreamStatusEnabled
}

// serverNow is the server's clock, in the whole seconds that it shows.
func (f *fake) serverNow() time.Time { return time.Now().Add(f.age).Truncate(time.Second) }

// enter counts a call, waits, and lets the script decide.
func (f *fake) enter(ctx context.Context, c fakeCall) error {
	f.mu.Lock()
	c.at = time.Now()
	c.n = f.made[c.op]
	f.made[c.op]++
	f.calls = append(f.calls, c)
	fault := f.fault
	f.mu.Unlock()
	select {
	case <-time.After(f.latency):
	case <-ctx.Done():
		return ctx.Err()
	}
	if fault == nil {
		return nil
	}
	err := fault(c)
	if err == errHang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fake) DescribeTable(ctx context.Context, _ *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	if err := f.enter(ctx, fakeCall{op: "DescribeTable"}); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table == nil {
		return nil, apiError("ResourceNotFoundException")
	}
	return &dynamodb.DescribeTableOutput{Table: f.table}, nil
}

func (f *fake) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	call := fakeCall{op: "DescribeStream"}
	if in.ShardFilter != nil {
		call.shard = aws.ToString(in.ShardFilter.ShardId)
	}
	if err := f.enter(ctx, call); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.table == nil || aws.ToString(f.table.LatestStreamArn) != *in.StreamArn {
		return nil, apiError("ResourceNotFoundException")
	}
	if in.ShardFilter != nil && f.refuseFilter {
		return nil, apiError("ValidationException")
	}
	var list []types.Shard
	for _, s := range f.shards {
		if s.removed || time.Now().Before(s.listedAt) {
			continue
		}
		if in.ShardFilter != nil && !f.ignoreFilter && s.parent != call.shard {
			continue
		}
		list = append(list, s.describe(f.endOnOpen))
	}
	if f.shuffle {
		slices.Reverse(list)
		if len(list) > 0 {
			list = append(list, list[0])
		}
	}
	d := &types.StreamDescription{StreamArn: in.StreamArn, StreamStatus: f.status}
	from := 0
	if in.ExclusiveStartShardId != nil {
		from, _ = strconv.Atoi(strings.TrimPrefix(*in.ExclusiveStartShardId, "page-"))
	}
	to := min(len(list), from+f.pageShards)
	d.Shards = list[min(from, to):to]
	if to < len(list) {
		d.LastEvaluatedShardId = aws.String(fmt.Sprintf("page-%d", to))
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

func (s *fakeShard) describe(endOnOpen bool) types.Shard {
	d := types.Shard{ShardId: aws.String(s.id), SequenceNumberRange: &types.SequenceNumberRange{StartingSequenceNumber: aws.String("1")}}
	if s.parent != "" {
		d.ParentShardId = aws.String(s.parent)
	}
	if s.closed || endOnOpen {
		d.SequenceNumberRange.EndingSequenceNumber = aws.String("2")
	}
	return d
}

func (f *fake) find(id string) *fakeShard {
	for _, s := range f.shards {
		if s.id == id {
			return s
		}
	}
	return nil
}

// An iterator is "shard|index|time of issue|empty pages to show first"; the index of a
// lazy LATEST is "L".
func (f *fake) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	if err := f.enter(ctx, fakeCall{op: "GetShardIterator", shard: *in.ShardId, kind: in.ShardIteratorType}); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.find(*in.ShardId)
	if s == nil || s.gone {
		return nil, apiError("ResourceNotFoundException")
	}
	index, empty := "", 0
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeTrimHorizon:
		index, empty = strconv.Itoa(s.trimmed), f.emptyPages
	case types.ShardIteratorTypeLatest:
		index = strconv.Itoa(len(s.records))
		if f.lazyLatest {
			index = "L"
		}
	case types.ShardIteratorTypeAfterSequenceNumber:
		i := slices.IndexFunc(s.records, func(r types.Record) bool { return *r.Dynamodb.SequenceNumber == *in.SequenceNumber })
		if i < s.trimmed {
			return nil, apiError("TrimmedDataAccessException")
		}
		index = strconv.Itoa(i + 1)
	case types.ShardIteratorTypeAtTimestamp:
		if f.noTimestamp || in.Timestamp.After(time.Now().Add(f.age)) {
			return nil, apiError("ValidationException")
		}
		i := s.trimmed
		for i < len(s.records) && s.records[i].Dynamodb.ApproximateCreationDateTime.Before(*in.Timestamp) {
			i++
		}
		index = strconv.Itoa(i)
	}
	it := fmt.Sprintf("%s|%s|%d|%d", s.id, index, time.Now().UnixNano(), empty)
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: &it}, nil
}

func (f *fake) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	part := strings.Split(*in.ShardIterator, "|")
	if err := f.enter(ctx, fakeCall{op: "GetRecords", shard: part[0]}); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.find(part[0])
	if s == nil || s.gone {
		return nil, apiError("ResourceNotFoundException")
	}
	issued, _ := strconv.ParseInt(part[2], 10, 64)
	if f.iteratorLife > 0 && time.Now().UnixNano()-issued > int64(f.iteratorLife) {
		return nil, apiError("ExpiredIteratorException")
	}
	index, err := strconv.Atoi(part[1])
	if err != nil {
		index = len(s.records)
	}
	if index < s.trimmed {
		return nil, apiError("TrimmedDataAccessException")
	}
	empty, _ := strconv.Atoi(part[3])
	to := min(len(s.records), index+f.pageRecords)
	if empty > 0 {
		to = index
	}
	out := &dynamodbstreams.GetRecordsOutput{Records: slices.Clone(s.records[index:to])}
	if to < len(s.records) || !s.closed {
		out.NextShardIterator = aws.String(fmt.Sprintf("%s|%d|%d|%d", s.id, to, time.Now().UnixNano(), max(empty-1, 0)))
	}
	return out, nil
}

// write puts the record of a change of a lock into a shard.
func (f *fake) write(shard string, rec types.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.find(shard)
	if s.closed {
		panic("write to a closed shard " + shard)
	}
	f.seq++
	created := f.serverNow()
	rec.Dynamodb.SequenceNumber = aws.String(strconv.Itoa(f.seq))
	rec.Dynamodb.ApproximateCreationDateTime = &created
	s.records = append(s.records, rec)
}

// edit changes the fake under its mutex.
func (f *fake) edit(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// rotate closes a shard and gives it children, which are listed after the given times.
func (f *fake) rotate(parent string, children map[string]time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.find(parent).closed = true
	for id, delay := range children {
		f.shards = append(f.shards, &fakeShard{id: id, parent: parent, listedAt: time.Now().Add(delay)})
	}
}

// count returns the calls of an operation since an instant.
func (f *fake) count(op string, since time.Time) int {
	return f.matching(func(c fakeCall) bool { return c.op == op && !c.at.Before(since) })
}

// matching returns how many calls match accepts.
func (f *fake) matching(match func(fakeCall) bool) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if match(c) {
			n++
		}
	}
	return n
}

// first returns the first call that match accepts.
func (f *fake) first(match func(fakeCall) bool) (fakeCall, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.calls, match)
	if i < 0 {
		return fakeCall{}, false
	}
	return f.calls[i], true
}

// text, number and image build the values of records.
func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}
func keys(name string) attributes { return attributes{"key": text(name)} }
func held(name, rvn string, token int64) attributes {
	return attributes{
		"key": text(name), "ownerName": text("client#" + strconv.FormatInt(token, 10)), "leaseDuration": text("20000"),
		"recordVersionNumber": text(rvn), "fencingToken": number(token), "lockOp": text("acquire"),
	}
}

func free(name, rvn string, token int64) attributes {
	a := held(name, rvn, token)
	a["isReleased"], a["lockOp"] = text("1"), text("release")
	return a
}

type attributes = map[string]types.AttributeValue

func record(event types.OperationType, name string, before, after attributes) types.Record {
	return types.Record{EventName: event, Dynamodb: &types.StreamRecord{Keys: keys(name), OldImage: before, NewImage: after}}
}

// release is the record of a release of name that left the version rvn.
func release(name, rvn string) types.Record {
	return record(types.OperationTypeModify, name, held(name, "before-"+rvn, 7), free(name, rvn, 7))
}

func remove(name string) types.Record {
	return record(types.OperationTypeRemove, name, free(name, "last", 7), nil)
}
