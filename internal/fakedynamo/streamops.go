package fakedynamo

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
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
	if !s.lists.take(time.Now(), s.rules.ListsPerSecond) {
		return nil, s.rules.throttled()
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
	found, err := s.listed(st, in.ShardFilter)
	if err != nil {
		return nil, err
	}
	s.fillPage(d, found, aws.ToString(in.ExclusiveStartShardId), limit)
	return &dynamodbstreams.DescribeStreamOutput{StreamDescription: d}, nil
}

// listed gives the shards that a description shows, in its order; the mutex is held.
func (s *Server) listed(st *stream, filter *types.ShardFilter) ([]*shard, error) {
	if filter != nil && s.rules.Children == ChildrenRefused {
		return nil, invalid("1 validation error detected: ShardFilter is not supported")
	}
	parent, filtered := "", filter != nil && filter.Type == types.ShardFilterTypeChildShards && s.rules.Children != ChildrenIgnored
	if filtered {
		parent = aws.ToString(filter.ShardId)
	}
	now := time.Now()
	var out []*shard
	for _, sh := range st.shards {
		switch {
		case sh.gone, sh.unlisted, sh.listedAt.After(now):
		case filtered && sh.parent != parent && (sh.id != parent || s.rules.Children != ChildrenAndSelf):
		default:
			out = append(out, sh)
		}
	}
	slices.SortFunc(out, s.compareListed)
	return out, nil
}

// compareListed orders shards as lists show them.
func (s *Server) compareListed(a, b *shard) int {
	if s.rules.Shuffled {
		if order := cmp.Compare(hashID(a.id), hashID(b.id)); order != 0 {
			return order
		}
	}
	return strings.Compare(a.id, b.id)
}

// fillPage puts the shards behind start into a description; the mutex is held.
func (s *Server) fillPage(d *types.StreamDescription, found []*shard, start string, limit int) {
	if s.rules.PageShards > 0 {
		limit = min(limit, s.rules.PageShards)
	}
	var last *shard
	for _, sh := range found {
		switch {
		case start != "" && s.compareListed(sh, &shard{id: start}) <= 0:
			last = sh
		case len(d.Shards) >= limit:
			d.LastEvaluatedShardId = d.Shards[len(d.Shards)-1].ShardId
			return
		default:
			if last != nil && s.rules.Twice && len(d.Shards) == 0 {
				d.Shards = append(d.Shards, s.describeShard(last))
				limit++
			}
			d.Shards = append(d.Shards, s.describeShard(sh))
		}
	}
}

// describeShard is [shard.describe] by the rules; the mutex is held.
func (s *Server) describeShard(sh *shard) types.Shard {
	out := sh.describe()
	if s.rules.EndOnOpen && !sh.closed() {
		out.SequenceNumberRange.EndingSequenceNumber = out.SequenceNumberRange.StartingSequenceNumber
	}
	return out
}

func hashID(id string) uint64 {
	return hashKey(expr.Item{"": &dbtypes.AttributeValueMemberS{Value: id}})
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
