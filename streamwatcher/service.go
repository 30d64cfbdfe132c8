package streamwatcher

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go/middleware"
)

// service makes the calls: with a time-out each, counted, and without the client's own
// retries, which would hide throttling for seconds.
type service struct {
	w       *Watcher
	tables  TableAPI
	streams StreamsAPI
	dated   func(middleware.Metadata) (time.Time, bool)
}

func serverTime(m middleware.Metadata) (time.Time, bool) { return awsmiddleware.GetServerTime(m) }

func noRetries(o *dynamodbstreams.Options) { o.Retryer = aws.NopRetryer{} }

// call runs one request. The answer's metadata feeds the estimate of the server's time.
func (s *service) call(ctx context.Context, op string, limit time.Duration, f func(context.Context) (middleware.Metadata, error)) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	meta, err := f(bounded)
	if ctx.Err() != nil {
		return ctx.Err() // the reader was stopped; what the call says is of no interest
	}
	if err == nil {
		if date, ok := s.dated(meta); ok {
			s.w.server.observe(date, time.Now())
		}
	} else {
		err = timedOut(err, ctx, op, limit)
	}
	s.w.counters.update(func(st *Stats) { st.Requests[op]++ })
	s.w.notify(func(o *Observer) {
		if o.Request != nil {
			o.Request(op, err)
		}
	})
	if err != nil && classify(err) == faultThrottle {
		s.throttled(op)
	}
	return err
}

func (s *service) throttled(op string) {
	if s.w.counters.throttled(time.Now()) {
		s.w.log.Warn("the stream's reader is throttled again and again: at most two processes should read one stream",
			"table", s.w.table, "operation", op)
	}
	s.w.notify(func(o *Observer) {
		if o.Throttled != nil {
			o.Throttled(op)
		}
	})
}

func (s *service) describeTable(ctx context.Context) (*dbtypes.TableDescription, error) {
	var table *dbtypes.TableDescription
	err := s.call(ctx, "DescribeTable", s.w.opt.ListTimeout, func(ctx context.Context) (middleware.Metadata, error) {
		out, err := s.tables.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.w.table})
		if err != nil {
			return middleware.Metadata{}, err
		}
		table = out.Table
		return out.ResultMetadata, nil
	})
	if table == nil {
		table = &dbtypes.TableDescription{}
	}
	return table, err
}

func (s *service) describeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput) (*types.StreamDescription, error) {
	var stream *types.StreamDescription
	err := s.call(ctx, "DescribeStream", s.w.opt.ListTimeout, func(ctx context.Context) (middleware.Metadata, error) {
		out, err := s.streams.DescribeStream(ctx, in, noRetries)
		if err != nil {
			return middleware.Metadata{}, err
		}
		stream = out.StreamDescription
		return out.ResultMetadata, nil
	})
	if stream == nil {
		stream = &types.StreamDescription{}
	}
	return stream, err
}

func (s *service) shardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput) (string, error) {
	var iterator string
	err := s.call(ctx, "GetShardIterator", s.w.opt.CallTimeout, func(ctx context.Context) (middleware.Metadata, error) {
		out, err := s.streams.GetShardIterator(ctx, in, noRetries)
		if err != nil {
			return middleware.Metadata{}, err
		}
		iterator = aws.ToString(out.ShardIterator)
		return out.ResultMetadata, nil
	})
	return iterator, err
}

// page is the answer of a GetRecords call.
type page struct {
	records []types.Record
	next    string // "" when the shard is closed and this was its end
	at      time.Time
}

func (s *service) records(ctx context.Context, shard, iterator string) (page, error) {
	var p page
	limit := int32(fullPage)
	began := time.Now()
	err := s.call(ctx, "GetRecords", s.w.opt.CallTimeout, func(ctx context.Context) (middleware.Metadata, error) {
		out, err := s.streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: &iterator, Limit: &limit}, noRetries)
		if err != nil {
			return middleware.Metadata{}, err
		}
		p = page{records: out.Records, next: aws.ToString(out.NextShardIterator), at: time.Now()}
		return out.ResultMetadata, nil
	})
	if ctx.Err() == nil {
		s.w.notify(func(o *Observer) {
			if o.Poll != nil {
				o.Poll(Poll{Shard: shard, Records: len(p.records), Took: time.Since(began), Err: err})
			}
		})
	}
	if err == nil {
		s.w.counters.update(func(st *Stats) {
			st.Polls++
			st.Records += uint64(len(p.records))
			if len(p.records) == 0 {
				st.EmptyPolls++
			}
		})
	}
	return p, err
}
