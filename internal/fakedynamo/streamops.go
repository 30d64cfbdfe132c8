package fakedynamo

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	iteratorLifetime = 15 * time.Minute
	maxRecords       = 1000
	maxShards        = 100
)

// findStream gives a stream by its ARN; the mutex is held.
func (s *Server) findStream(arn *string) (*stream, error) {
	if aws.ToString(arn) == "" {
		return nil, invalid("1 validation error detected: Value null at 'streamArn' failed to satisfy constraint: Member must not be null")
	}
	st := s.streams[*arn]
	if st == nil {
		return nil, fail(codeNotFound, "Requested resource not found: Stream: %s not found", *arn)
	}
	return st, nil
}

// pageLimit reads an optional limit between 1 and most.
func pageLimit(limit *int32, most int) (int, error) {
	if limit == nil {
		return most, nil
	}
	if *limit < 1 || int(*limit) > most {
		return 0, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and %d", *limit, most)
	}
	return int(*limit), nil
}

func (s *Server) describeStream(in *dynamodbstreams.DescribeStreamInput) (*dynamodbstreams.DescribeStreamOutput, error) {
	limit, err := pageLimit(in.Limit, maxShards)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.findStream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	d := &types.StreamDescription{
		StreamArn: aws.String(st.arn), StreamLabel: aws.String(st.label), TableName: aws.String(st.table),
		StreamStatus: st.status(time.Now()), StreamViewType: types.StreamViewType(st.view),
		CreationRequestDateTime: aws.Time(st.created), Shards: []types.Shard{},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(st.partition.name), KeyType: types.KeyTypeHash}},
	}
	if st.sort.name != "" {
		d.KeySchema = append(d.KeySchema, types.KeySchemaElement{AttributeName: aws.String(st.sort.name), KeyType: types.KeyTypeRange})
	}
	for _, sh := range st.listed(in.ShardFilter) {
		switch {
		case sh.id <= aws.ToString(in.ExclusiveStartShardId):
		case len(d.Shards) == limit:
			d.LastEvaluatedShardId = d.Shards[limit-1].ShardId
			return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
		default:
			d.Shards = append(d.Shards, sh.describe())
		}
	}
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

// listed gives the shards that a description shows.
func (st *stream) listed(filter *types.ShardFilter) []*shard {
	if filter == nil || filter.Type != types.ShardFilterTypeChildShards {
		return st.shards
	}
	var out []*shard
	for _, sh := range st.shards {
		if sh.parent == aws.ToString(filter.ShardId) {
			out = append(out, sh)
		}
	}
	return out
}

func (sh *shard) describe() types.Shard {
	out := types.Shard{
		ShardId:             aws.String(sh.id),
		SequenceNumberRange: &types.SequenceNumberRange{StartingSequenceNumber: aws.String(sh.firstSeq)},
	}
	if sh.parent != "" {
		out.ParentShardId = aws.String(sh.parent)
	}
	if sh.lastSeq != "" {
		out.SequenceNumberRange.EndingSequenceNumber = aws.String(sh.lastSeq)
	}
	return out
}

func (st *stream) status(now time.Time) types.StreamStatus {
	switch {
	case st.disabled:
		return types.StreamStatusDisabled
	case now.Before(st.enabledAt):
		return types.StreamStatusEnabling
	}
	return types.StreamStatusEnabled
}

func (s *Server) listStreams(in *dynamodbstreams.ListStreamsInput) (*dynamodbstreams.ListStreamsOutput, error) {
	limit, err := pageLimit(in.Limit, 100)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &dynamodbstreams.ListStreamsOutput{Streams: []types.Stream{}}
	for _, arn := range slices.Sorted(maps.Keys(s.streams)) {
		st := s.streams[arn]
		switch {
		case in.TableName != nil && st.table != *in.TableName, arn <= aws.ToString(in.ExclusiveStartStreamArn):
		case len(out.Streams) == limit:
			out.LastEvaluatedStreamArn = out.Streams[limit-1].StreamArn
			return out, nil
		default:
			out.Streams = append(out.Streams, types.Stream{
				StreamArn: aws.String(arn), StreamLabel: aws.String(st.label), TableName: aws.String(st.table),
			})
		}
	}
	return out, nil
}

// iterator is what a shard iterator says: a position in a shard, and when it
// was handed out.
type iterator struct {
	arn, shard string
	position   int
	issued     time.Time
}

func (it iterator) encode() *string {
	text := fmt.Sprintf("%s|%s|%d|%d", it.arn, it.shard, it.position, it.issued.UnixNano())
	return aws.String(base64.StdEncoding.EncodeToString([]byte(text)))
}

func decodeIterator(text *string) (iterator, error) {
	var it iterator
	var issued int64
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(text))
	parts := strings.Split(string(raw), "|")
	if err != nil || len(parts) != 4 {
		return it, invalid("Invalid ShardIterator: The ShardIterator is not valid")
	}
	it.arn, it.shard = parts[0], parts[1]
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "%d %d", &it.position, &issued); err != nil {
		return it, invalid("Invalid ShardIterator: The ShardIterator is not valid")
	}
	it.issued = time.Unix(0, issued)
	return it, nil
}

func (s *Server) getShardIterator(in *dynamodbstreams.GetShardIteratorInput) (*dynamodbstreams.GetShardIteratorOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.findStream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	sh, ok := st.shard(aws.ToString(in.ShardId))
	if !ok {
		return nil, fail(codeNotFound, "Requested resource not found: Shard: %s in Stream: %s not found", aws.ToString(in.ShardId), st.arn)
	}
	it := iterator{arn: st.arn, shard: sh.id, issued: time.Now()}
	seq := aws.ToString(in.SequenceNumber)
	switch in.ShardIteratorType {
	case types.ShardIteratorTypeTrimHorizon:
	case types.ShardIteratorTypeLatest:
		it.position = sh.end()
	case types.ShardIteratorTypeAtSequenceNumber, types.ShardIteratorTypeAfterSequenceNumber:
		if seq == "" || strings.Trim(seq, "0123456789") != "" {
			return nil, invalid("Invalid SequenceNumber: a number is required for iterator type %s", in.ShardIteratorType)
		}
		it.position = sh.seek(seq, in.ShardIteratorType == types.ShardIteratorTypeAfterSequenceNumber)
		seq = ""
	default:
		return nil, invalid("1 validation error detected: Value '%s' at 'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]", in.ShardIteratorType)
	}
	if seq != "" {
		return nil, invalid("Invalid SequenceNumber: none may be given for iterator type %s", in.ShardIteratorType)
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: it.encode()}, nil
}

func (s *Server) getRecords(in *dynamodbstreams.GetRecordsInput) (*dynamodbstreams.GetRecordsOutput, error) {
	limit, err := pageLimit(in.Limit, maxRecords)
	if err != nil {
		return nil, err
	}
	it, err := decodeIterator(in.ShardIterator)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if now.Sub(it.issued) > iteratorLifetime {
		return nil, fail(codeExpiredIterator, "Iterator expired. The iterator was created at time %s which is too far in the past", it.issued.UTC().Format(time.RFC3339))
	}
	st, records, next, err := s.page(it, limit)
	if err != nil {
		return nil, err
	}
	out := &dynamodbstreams.GetRecordsOutput{Records: make([]types.Record, 0, len(records))}
	for _, r := range records {
		out.Records = append(out.Records, s.show(st, r))
	}
	if next != nil {
		next.issued = now
		out.NextShardIterator = next.encode()
	}
	return out, nil
}

// page reads records at an iterator and gives the next one, or nil at the end
// of a closed shard. Records are never changed, so they can be shown later.
func (s *Server) page(it iterator, limit int) (*stream, []record, *iterator, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[it.arn]
	if st == nil {
		return nil, nil, nil, fail(codeNotFound, "Requested resource not found: Stream: %s not found", it.arn)
	}
	sh, ok := st.shard(it.shard)
	if !ok {
		return nil, nil, nil, fail(codeNotFound, "Requested resource not found: Shard: %s in Stream: %s not found", it.shard, it.arn)
	}
	records := sh.read(it.position, limit)
	it.position += len(records)
	if sh.closed() && it.position >= sh.end() {
		return st, records, nil, nil
	}
	return st, records, &it, nil
}
