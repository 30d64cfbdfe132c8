package streamwatcher

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

// flaw is a fault of a reader or waiter that the schedules must find: each was made by
// somebody once.
type flaw uint8

const (
	sound              flaw = iota
	flawChildrenLatest      // children are read from LATEST
	flawLastPage            // the last page of a closed shard is dropped
	flawWatchLate           // the waiter looks first and watches then
	flawPositionFirst       // the position moves before the records are handed over
)

// streams is the API as a reader with the flaw uses it.
func (f flaw) streams(api StreamsAPI) StreamsAPI {
	if f == flawChildrenLatest {
		return latestOnly{api}
	}
	return api
}

// latestOnly reads from LATEST what should be read from its beginning.
type latestOnly struct{ StreamsAPI }

func (l latestOnly) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, optFns ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	own := *in
	if own.ShardIteratorType == types.ShardIteratorTypeTrimHorizon {
		own.ShardIteratorType = types.ShardIteratorTypeLatest
	}
	return l.StreamsAPI.GetShardIterator(ctx, &own, optFns...)
}

// spoil gives a watcher the flaw.
func (f flaw) spoil(w *Watcher) {
	switch f {
	case flawLastPage:
		w.handOver = func(k *worker, p page) {
			if p.next != "" {
				k.handOver(p)
			}
		}
	case flawPositionFirst:
		// The records of a page are handed over with the next one; a failure in between
		// loses them, for the position is behind them already.
		held := make(map[*worker]page)
		turn := make(chan struct{}, 1)
		w.handOver = func(k *worker, p page) {
			turn <- struct{}{}
			defer func() { <-turn }()
			if before, ok := held[k]; ok && k.fails == 0 {
				take(w, before)
			}
			held[k] = p
			if p.next == "" {
				take(w, p)
			}
		}
	}
}

func take(w *Watcher, p page) {
	for i := range p.records {
		w.take(&p.records[i], p.at)
	}
}

// watch begins a waiter's watch. With the flaw the look comes before it, and a write
// fits in between.
func (f flaw) watch(s *schedule, a *waiter) lockevent.Watch {
	if f == flawWatchLate {
		a.look()
		time.Sleep(time.Second)
	}
	return s.w.Watch(a.name)
}
