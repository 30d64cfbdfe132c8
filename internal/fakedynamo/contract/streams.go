package contract

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// streamOf gives the ARN of a table's latest stream.
func (s *suite) streamOf(t *testing.T, table string) *string {
	t.Helper()
	out, err := s.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil || out.Table.LatestStreamArn == nil {
		t.Fatalf("no stream: %v, %v", out, err)
	}
	return out.Table.LatestStreamArn
}

// shards waits until the stream is enabled and has shards.
func (s *suite) shards(t *testing.T, arn *string) []streamtypes.Shard {
	t.Helper()
	var shards []streamtypes.Shard
	s.await(t, "the stream to be enabled", func() bool {
		out, err := s.streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
		if err != nil {
			t.Fatal(err)
		}
		shards = out.StreamDescription.Shards
		return out.StreamDescription.StreamStatus == streamtypes.StreamStatusEnabled && len(shards) > 0
	})
	return shards
}

func (s *suite) iterator(t *testing.T, in *dynamodbstreams.GetShardIteratorInput) *string {
	t.Helper()
	out, err := s.streams.GetShardIterator(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out.ShardIterator
}

// read reads on at an iterator until there are n records.
func (s *suite) read(t *testing.T, it *string, n int, limit *int32) (records []streamtypes.Record, next *string) {
	t.Helper()
	s.await(t, "stream records", func() bool {
		if it == nil {
			t.Fatalf("the shard ended after %d records, want %d", len(records), n)
		}
		out, err := s.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: it, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		if limit != nil && len(out.Records) > int(*limit) {
			t.Errorf("%d records with a limit of %d", len(out.Records), *limit)
		}
		records, it = append(records, out.Records...), out.NextShardIterator
		return len(records) >= n
	})
	if len(records) > n {
		t.Errorf("%d records, want %d", len(records), n)
	}
	return records, it
}

// change makes an insert, a change and a removal of an item.
func (s *suite) change(t *testing.T, table, key string) {
	t.Helper()
	s.put(t, table, with(key, item{"a": num("1"), "data": bin("x")}))
	_, err := s.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: item{"key": str(key)}, UpdateExpression: aws.String("SET a = :two"),
		ExpressionAttributeValues: item{":two": num("2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: item{"key": str(key)}})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *suite) streamRecords(t *testing.T) {
	table := s.createTable(t, nil, types.StreamViewTypeNewAndOldImages)
	arn := s.streamOf(t, table)
	shards := s.shards(t, arn)
	if len(shards) != 1 {
		t.Fatalf("a new table has %d shards", len(shards))
	}
	if r := shards[0].SequenceNumberRange; !s.AnyShardRange && (r == nil || r.StartingSequenceNumber == nil || r.EndingSequenceNumber != nil) {
		t.Errorf("the open shard has the range %+v", r)
	}
	s.change(t, table, "k")
	s.unchanged(t, table)
	it := s.iterator(t, &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shards[0].ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
	want := []struct {
		event    streamtypes.OperationType
		old, new string // attribute a, or empty without an image
	}{
		{streamtypes.OperationTypeInsert, "", "1"},
		{streamtypes.OperationTypeModify, "1", "2"},
		{streamtypes.OperationTypeRemove, "2", ""},
		{streamtypes.OperationTypeInsert, "", "5"},
	}
	n := len(want)
	if s.RecordsForNoChange {
		n += 2
	}
	records, next := s.read(t, it, n, nil)
	if next == nil {
		t.Error("an open shard has no next iterator")
	}
	for i, w := range want {
		r := records[i]
		if r.EventName != w.event || attribute(r.Dynamodb.OldImage) != w.old || attribute(r.Dynamodb.NewImage) != w.new {
			t.Errorf("record %d is %s %v → %v, want %+v", i, r.EventName, r.Dynamodb.OldImage, r.Dynamodb.NewImage, w)
		}
		if len(r.Dynamodb.Keys) != 1 || r.Dynamodb.ApproximateCreationDateTime == nil || aws.ToString(r.EventID) == "" || r.UserIdentity != nil {
			t.Errorf("record %d is %+v", i, r)
		}
		if i > 0 && !sequenceLess(records[i-1].Dynamodb.SequenceNumber, r.Dynamodb.SequenceNumber) {
			t.Errorf("sequence number %s does not follow %s", *r.Dynamodb.SequenceNumber, *records[i-1].Dynamodb.SequenceNumber)
		}
	}
}

// unchanged makes one change, two that change nothing, and two failures.
func (s *suite) unchanged(t *testing.T, table string) {
	t.Helper()
	s.put(t, table, with("u", item{"a": num("5")}))
	s.put(t, table, with("u", item{"a": num("5.0")}))
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: item{"key": str("u")}, UpdateExpression: aws.String("SET a = :v"),
		ExpressionAttributeValues: item{":v": num("5")},
	}
	if _, err := s.db.UpdateItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	in.ConditionExpression = aws.String("a <> :v")
	_, err := s.db.UpdateItem(t.Context(), in)
	s.wantError(t, err, "ConditionalCheckFailedException", "")
	if _, err := s.db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(table), Key: item{"key": str("absent")}}); err != nil {
		t.Fatal(err)
	}
}

// attribute reads the number a of an image.
func attribute(image map[string]streamtypes.AttributeValue) string {
	if n, ok := image["a"].(*streamtypes.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

// sequenceLess compares decimal numbers of any length.
func sequenceLess(a, b *string) bool {
	x, y := aws.ToString(a), aws.ToString(b)
	return len(x) < len(y) || len(x) == len(y) && x < y
}

func (s *suite) streamViews(t *testing.T) {
	for view, images := range map[types.StreamViewType][2]bool{
		types.StreamViewTypeKeysOnly:        {false, false},
		types.StreamViewTypeNewImage:        {false, true},
		types.StreamViewTypeOldImage:        {true, false},
		types.StreamViewTypeNewAndOldImages: {true, true},
	} {
		t.Run(string(view), func(t *testing.T) {
			table := s.createTable(t, nil, view)
			arn := s.streamOf(t, table)
			shard := s.shards(t, arn)[0]
			s.change(t, table, "k")
			it := s.iterator(t, &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
			records, _ := s.read(t, it, 3, nil)
			d := records[1].Dynamodb
			if (len(d.OldImage) > 0) != images[0] || (len(d.NewImage) > 0) != images[1] || len(d.Keys) != 1 || string(d.StreamViewType) != string(view) {
				t.Errorf("a change is shown as %+v", d)
			}
		})
	}
}

func (s *suite) streamIterators(t *testing.T) {
	table := s.createTable(t, nil, types.StreamViewTypeNewAndOldImages)
	arn := s.streamOf(t, table)
	shard := s.shards(t, arn)[0]
	s.change(t, table, "first")
	at := func(kind streamtypes.ShardIteratorType, seq *string) *string {
		t.Helper()
		return s.iterator(t, &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: kind, SequenceNumber: seq})
	}
	first, _ := s.read(t, at(streamtypes.ShardIteratorTypeTrimHorizon, nil), 3, aws.Int32(2))
	latest := at(streamtypes.ShardIteratorTypeLatest, nil)
	s.change(t, table, "second")
	all, _ := s.read(t, at(streamtypes.ShardIteratorTypeTrimHorizon, nil), 6, nil)
	expect := func(kind streamtypes.ShardIteratorType, got, want []streamtypes.Record) {
		t.Helper()
		if !slices.Equal(sequences(got), sequences(want)) {
			t.Errorf("%s gives %v, want %v", kind, sequences(got), sequences(want))
		}
	}
	expect("limited", first, all[:3])
	later, _ := s.read(t, latest, 3, nil)
	expect(streamtypes.ShardIteratorTypeLatest, later, all[3:])
	seq := all[2].Dynamodb.SequenceNumber
	got, _ := s.read(t, at(streamtypes.ShardIteratorTypeAtSequenceNumber, seq), 4, nil)
	expect(streamtypes.ShardIteratorTypeAtSequenceNumber, got, all[2:])
	got, next := s.read(t, at(streamtypes.ShardIteratorTypeAfterSequenceNumber, seq), 3, nil)
	expect(streamtypes.ShardIteratorTypeAfterSequenceNumber, got, all[3:])
	out, err := s.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: next})
	if err != nil || len(out.Records) != 0 || out.NextShardIterator == nil {
		t.Errorf("at the end: %+v, %v", out, err)
	}
	if !s.Lenient {
		_, err = s.streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: arn, ShardId: aws.String("shardId-00000000000000000000-ffffffff"), ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		})
		s.wantError(t, err, "ResourceNotFoundException", "")
	}
	_, err = s.streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("nonsense")})
	s.wantError(t, err, "ValidationException", "")
}

func sequences(records []streamtypes.Record) (out []string) {
	for _, r := range records {
		out = append(out, aws.ToString(r.Dynamodb.SequenceNumber))
	}
	return out
}

// streamRenewed checks that a stream that was disabled and enabled again has a
// new ARN.
func (s *suite) streamRenewed(t *testing.T) {
	table := s.createTable(t, nil, types.StreamViewTypeKeysOnly)
	old := s.streamOf(t, table)
	s.shards(t, old)
	update := func(spec *types.StreamSpecification) {
		t.Helper()
		if _, err := s.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: aws.String(table), StreamSpecification: spec}); err != nil {
			t.Fatal(err)
		}
		s.awaitActive(t, table)
	}
	update(&types.StreamSpecification{StreamEnabled: aws.Bool(false)})
	out, err := s.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	if err != nil || out.Table.StreamSpecification != nil && aws.ToBool(out.Table.StreamSpecification.StreamEnabled) {
		t.Errorf("after disabling: %+v, %v", out.Table.StreamSpecification, err)
	}
	update(&types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages})
	arn := s.streamOf(t, table)
	if *arn == *old {
		t.Errorf("the stream is still %s", *arn)
	}
	listed, err := s.streams.ListStreams(t.Context(), &dynamodbstreams.ListStreamsInput{TableName: aws.String(table)})
	if err != nil || !slices.ContainsFunc(listed.Streams, func(st streamtypes.Stream) bool { return *st.StreamArn == *arn }) {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	shard := s.shards(t, arn)[0]
	s.change(t, table, "k")
	it := s.iterator(t, &dynamodbstreams.GetShardIteratorInput{StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon})
	s.read(t, it, 3, nil)
}
