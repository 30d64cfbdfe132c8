package fakedynamo

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// iterator is what a shard iterator says: a position in a shard, and when it
// was handed out.
type iterator struct {
	arn, shard string
	position   int // lazy: the end at the first use
	issued     time.Time
	empty      int // empty pages that it still shows
}

const lazy = -1

func (it iterator) encode() *string {
	text := fmt.Sprintf("%s|%s|%d|%d|%d", it.arn, it.shard, it.position, it.issued.UnixNano(), it.empty)
	return aws.String(base64.StdEncoding.EncodeToString([]byte(text)))
}

func decodeIterator(text *string) (iterator, error) {
	var it iterator
	raw, err := base64.StdEncoding.DecodeString(aws.ToString(text))
	parts := strings.Split(string(raw), "|")
	if err != nil || len(parts) != 5 {
		return it, invalid("Invalid ShardIterator: The ShardIterator is not valid")
	}
	it.arn, it.shard = parts[0], parts[1]
	var numbers [3]int64
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(parts[2+i], 10, 64); err != nil {
			return it, invalid("Invalid ShardIterator: The ShardIterator is not valid")
		}
	}
	it.position, it.issued, it.empty = int(numbers[0]), time.Unix(0, numbers[1]), int(numbers[2])
	return it, nil
}

func (s *Server) getShardIterator(in *dynamodbstreams.GetShardIteratorInput) (*dynamodbstreams.GetShardIteratorOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.findStream(in.StreamArn)
	if err != nil {
		return nil, err
	}
	sh, err := st.readable(aws.ToString(in.ShardId))
	if err != nil {
		return nil, err
	}
	it := iterator{arn: st.arn, shard: sh.id, issued: time.Now()}
	if err := s.position(&it, sh, in); err != nil {
		return nil, err
	}
	return &dynamodbstreams.GetShardIteratorOutput{ShardIterator: it.encode()}, nil
}

// position sets where an iterator begins; the mutex is held.
func (s *Server) position(it *iterator, sh *shard, in *dynamodbstreams.GetShardIteratorInput) error {
	kind, seq := in.ShardIteratorType, aws.ToString(in.SequenceNumber)
	if kind == types.ShardIteratorTypeAtSequenceNumber || kind == types.ShardIteratorTypeAfterSequenceNumber {
		if seq == "" || strings.Trim(seq, "0123456789") != "" {
			return invalid("Invalid SequenceNumber: a number is required for iterator type %s", kind)
		}
		if sh.trimmed > 0 && (len(sh.records) == 0 || compareSeq(seq, sh.records[0].seq) < 0) {
			return fail(codeTrimmed, "The operation attempted to read past the oldest stream record in a shard")
		}
		it.position = sh.seek(seq, kind == types.ShardIteratorTypeAfterSequenceNumber)
		return nil
	}
	if seq != "" {
		return invalid("Invalid SequenceNumber: none may be given for iterator type %s", kind)
	}
	it.empty = s.rules.EmptyPages
	switch {
	case kind == types.ShardIteratorTypeTrimHorizon:
		it.position = sh.trimmed
	case kind == types.ShardIteratorTypeLatest && s.rules.LazyLatest:
		it.position = lazy
	case kind == types.ShardIteratorTypeLatest:
		it.position = sh.end()
	case kind == types.ShardIteratorTypeAtTimestamp && !s.rules.NoTimestamps:
		if in.Timestamp == nil || in.Timestamp.After(s.Now()) {
			return invalid("Invalid Timestamp: it is missing or in the future")
		}
		it.position = sh.seekTime(*in.Timestamp)
	default:
		return invalid("1 validation error detected: Value '%s' at 'shardIteratorType' failed to satisfy constraint: Member must satisfy enum value set: [AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]", kind)
	}
	return nil
}

// readable finds a shard that can be read; the mutex is held.
func (st *stream) readable(id string) (*shard, error) {
	sh, ok := st.shard(id)
	if !ok || sh.gone {
		return nil, fail(codeNotFound, "Requested resource not found: Shard: %s in Stream: %s not found", id, st.arn)
	}
	return sh, nil
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
	st, records, next, err := s.page(it, now, limit)
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
func (s *Server) page(it iterator, now time.Time, limit int) (*stream, []record, *iterator, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[it.arn]
	if st == nil {
		return nil, nil, nil, fail(codeNotFound, "Requested resource not found: Stream: %s not found", it.arn)
	}
	sh, err := st.readable(it.shard)
	if err != nil {
		return nil, nil, nil, err
	}
	if !sh.reads.take(now, s.rules.ReadsPerSecond) {
		return nil, nil, nil, s.rules.throttled()
	}
	if err := s.usable(it, st, sh, now); err != nil {
		return nil, nil, nil, err
	}
	if s.rules.PageRecords > 0 {
		limit = min(limit, s.rules.PageRecords)
	}
	if it.position == lazy {
		it.position = sh.end()
	}
	if it.empty > 0 {
		it.empty--
		return st, nil, &it, nil
	}
	to := max(it.position, min(it.position+limit, sh.visible(now)))
	from := it.position
	if to > from {
		from -= s.rules.Repeat
	}
	records := sh.read(from, to)
	it.position = to
	if sh.closed() && to >= sh.end() {
		return st, records, nil, nil
	}
	return st, records, &it, nil
}

// usable checks an iterator's age and position; the mutex is held.
func (s *Server) usable(it iterator, st *stream, sh *shard, now time.Time) error {
	life := s.rules.IteratorLife
	if life == 0 {
		life = iteratorLifetime
	}
	if now.Sub(it.issued) > life || !it.issued.After(st.expired) {
		return fail(codeExpiredIterator, "Iterator expired. The iterator was created at time %s which is too far in the past", it.issued.UTC().Format(time.RFC3339))
	}
	if it.position != lazy && it.position < sh.trimmed {
		return fail(codeTrimmed, "The operation attempted to read past the oldest stream record in a shard")
	}
	return nil
}
