package streamwatcher

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	fullPage      = 1000    // records that are asked for at once
	fullPageBytes = 900_000 // a page is cut at about 1 MB whatever its count

	// quickPolls is how many pages that are not full a read from the beginning of a
	// shard takes without a pause: an empty page does not mean the end.
	quickPolls = 10

	// startMargin is how far before the server's present a read by time begins.
	startMargin = 5 * time.Second

	// clockMargin is how much older than the reader's start a record must be to be taken for
	// history. The time in records and the Date of answers may come from clocks that
	// differ, and a change too many does less harm than one that is missed.
	clockMargin = 15 * time.Minute

	// skipBacklogAfter is the length of an outage after which records are not made up
	// for: everybody looks at the table anyway.
	skipBacklogAfter = time.Minute

	// reopenEvery is after how many failures in a row the iterator is given up.
	reopenEvery = 8
)

// rung is where a new iterator begins, from the best to the last resort.
type rung uint8

const (
	rungAfter   rung = iota // after the last record that was handed over
	rungTime                // at a time
	rungHorizon             // at the oldest record
	rungLatest              // after the newest record
)

// worker reads one shard in its own goroutine: iterator, polls, back-off, end.
type worker struct {
	r     *reader
	epoch uint64
	shard *shard // its atomic fields and its id only
	arn   string

	iterator  string
	position  string // sequence number of the last record that was handed over
	origin    rung   // rungHorizon: nothing of this shard was ever read; rungTime: it was there before
	rung      rung
	from      time.Time // for rungTime, on the server's clock
	notBefore time.Time // records from before are left out; zero: none are
	quick     int       // pages that are still read without a pause
	lastGood  time.Time
	fails     int
	armed     bool
	pace      pace
}

// run reads until the shard ends, is lost, or ctx ends.
func (k *worker) run(ctx context.Context) {
	for {
		delay, more := k.round(ctx)
		if !more {
			return
		}
		if !sleep(ctx, delay, k.shard.nudge) {
			return
		}
	}
}

// round makes one poll, with a new iterator where one is needed. It returns the delay
// before the next, and false when there is none.
func (k *worker) round(ctx context.Context) (time.Duration, bool) {
	if k.fails > 0 && time.Since(k.lastGood) > skipBacklogAfter {
		k.beginFresh()
	}
	if !k.armed && !k.r.takeSlot(ctx) {
		return 0, false
	}
	p, err := k.poll(ctx)
	if !k.armed {
		k.r.freeSlot()
	}
	if err != nil {
		return k.failed(ctx, err)
	}
	return k.took(ctx, p)
}

func (k *worker) poll(ctx context.Context) (page, error) {
	api := &k.r.w.api
	if k.iterator == "" {
		request := k.start()
		if k.armed && k.rung != rungAfter {
			k.distrust(ctx, CauseSilent) // something may lie between the last record and here
		}
		it, err := api.shardIterator(ctx, request)
		if err != nil {
			return page{}, err
		}
		k.iterator = it
	}
	return api.records(ctx, k.shard.id, k.iterator)
}

// beginFresh forgets the position: the next iterator is at the server's present.
func (k *worker) beginFresh() {
	k.position, k.iterator, k.origin = "", "", rungTime
	k.rung, k.from = rungLatest, time.Time{}
	if now, ok := k.r.w.server.now(); ok {
		k.rung, k.from = rungTime, now.Add(-startMargin)
		k.notBefore = k.from
	}
}

// start returns the request for a new iterator, at the best rung that is not above the
// worker's and that this server and this shard have.
func (k *worker) start() *dynamodbstreams.GetShardIteratorInput {
	in := &dynamodbstreams.GetShardIteratorInput{StreamArn: &k.arn, ShardId: &k.shard.id}
	if k.rung == rungAfter && k.position == "" {
		k.rung = k.origin
	}
	if k.rung == rungTime && (k.from.IsZero() || k.r.w.noTimestamp.Load()) {
		k.rung = rungHorizon
		if k.notBefore.IsZero() || !k.armed {
			// Without an age limit the oldest record may be a day old, and before the
			// first answer nobody relies on anything.
			k.rung = rungLatest
		}
	}
	switch k.rung {
	case rungAfter:
		in.ShardIteratorType, in.SequenceNumber = types.ShardIteratorTypeAfterSequenceNumber, &k.position
	case rungTime:
		in.ShardIteratorType, in.Timestamp = types.ShardIteratorTypeAtTimestamp, &k.from
	case rungHorizon:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
		k.quick = quickPolls
	default:
		in.ShardIteratorType = types.ShardIteratorTypeLatest
	}
	return in
}

// took hands over a page and moves the position, in this order.
func (k *worker) took(ctx context.Context, p page) (time.Duration, bool) {
	k.r.w.handOver(k, p)
	size := k.move(p)
	k.good(ctx, p.at)
	if p.next == "" {
		position := k.position
		k.r.post(ctx, k.epoch, func() { k.r.drained(k.shard, position) })
		return 0, false
	}
	return k.delay(len(p.records), size), true
}

// handOver gives the records of a page to those who wait for them, but for those that an
// earlier page of this shard had: a shard shows its records in order.
func (k *worker) handOver(p page) {
	for i := range p.records {
		rec := &p.records[i]
		switch {
		case rec.Dynamodb == nil:
		case k.handedOver(rec):
			k.r.w.counters.update(func(s *Stats) { s.Repeated++ })
		case k.tooOld(rec):
			k.r.w.counters.update(func(s *Stats) { s.Stale++ })
		default:
			k.r.w.take(rec, p.at)
		}
	}
}

func (k *worker) handedOver(rec *types.Record) bool {
	seq := aws.ToString(rec.Dynamodb.SequenceNumber)
	return seq != "" && (seq == k.position || older(seq, k.position))
}

// move sets iterator and position behind a page and returns its size in bytes.
func (k *worker) move(p page) (size int64) {
	for i := range p.records {
		d := p.records[i].Dynamodb
		if d == nil {
			continue
		}
		if d.SizeBytes != nil {
			size += *d.SizeBytes
		}
		if !k.handedOver(&p.records[i]) {
			k.position = aws.ToString(d.SequenceNumber)
		}
	}
	k.iterator, k.rung, k.fails = p.next, rungAfter, 0
	return size
}

// good notes a good poll and reports it where the reader waits for it.
func (k *worker) good(ctx context.Context, at time.Time) {
	k.pace.polled()
	k.lastGood = at
	if now, ok := k.r.w.server.now(); ok {
		k.from = now.Add(-startMargin) // where to resume when the iterator is lost
	}
	k.shard.lastGood.Store(int64(at.Sub(k.r.birth)))
	if k.shard.troubled.Swap(false) || !k.armed {
		k.armed = true
		k.r.post(ctx, k.epoch, func() { k.r.readWell(k.shard) })
	}
}

// delay returns the pause before the next poll: none after a full page, nor for the
// first pages of a read from the beginning.
func (k *worker) delay(records int, size int64) time.Duration {
	if records >= fullPage || size >= fullPageBytes {
		return 0
	}
	if k.quick > 0 {
		k.quick--
		return 0
	}
	return k.plan(k.r.w.hub.quiet())
}

// plan returns the regular pause and lets the reader know of it, which judges silence.
func (k *worker) plan(quiet time.Duration) time.Duration {
	d := k.pace.next(quiet)
	k.shard.interval.Store(int64(max(d, k.pace.base+k.pace.extra)))
	return d
}

func (k *worker) tooOld(rec *types.Record) bool {
	created := rec.Dynamodb.ApproximateCreationDateTime
	return created != nil && !k.notBefore.IsZero() && created.Before(k.notBefore.Add(-clockMargin))
}

// failed decides what follows a call that failed.
func (k *worker) failed(ctx context.Context, err error) (time.Duration, bool) {
	if ctx.Err() != nil {
		return 0, false
	}
	k.fails++
	switch classify(err) {
	case faultThrottle:
		if k.iterator == "" { // of another limit than that of polls
			return k.pace.chance.backoff(k.fails), true
		}
		if k.quick == 0 {
			k.pace.throttled()
		}
		k.quick = 0
		return k.plan(0), true
	case faultGone:
		position := k.position
		k.r.post(ctx, k.epoch, func() { k.r.lost(k.shard, position) })
		return 0, false
	case faultAccess:
		k.r.post(ctx, k.epoch, func() { k.r.denied(err) })
		return 0, false
	case faultExpired:
		k.reopen(ctx, CauseExpired, rungAfter)
	case faultTrimmed:
		k.reopen(ctx, CauseTrimmed, k.below())
	case faultUnsupported:
		k.refused(ctx)
	default:
		k.r.post(ctx, k.epoch, func() { k.r.failing = err })
		if k.fails%reopenEvery == 0 {
			k.iterator, k.rung = "", rungAfter
		}
		return k.pace.chance.backoff(k.fails), true
	}
	if k.fails <= 1 {
		return 0, true
	}
	return k.pace.chance.backoff(k.fails - 1), true
}

// reopen gives the iterator up.
func (k *worker) reopen(ctx context.Context, cause Cause, at rung) {
	k.iterator, k.rung = "", at
	k.distrust(ctx, cause)
}

// distrust tells the reader that an event may be missed here, before reading goes on:
// everybody is told to look now, and again after the next good poll.
func (k *worker) distrust(ctx context.Context, cause Cause) {
	k.shard.troubled.Store(true)
	k.r.post(ctx, k.epoch, func() { k.r.trouble(k.shard, cause) })
}

// below returns the rung to try after records were trimmed under the present one. After
// the last it begins again at the oldest record.
func (k *worker) below() rung {
	if k.rung == rungAfter && !k.from.IsZero() && !k.r.w.noTimestamp.Load() {
		return rungTime
	}
	if k.rung == rungHorizon {
		return rungLatest
	}
	return rungHorizon
}

// refused handles a request that the server did not understand: it may not know reads
// by time, or not take the iterator.
func (k *worker) refused(ctx context.Context) {
	if k.iterator == "" && k.rung == rungTime {
		k.r.w.noTimestamp.Store(true)
		k.fails-- // a question, not a failure
		return
	}
	at := k.below()
	if k.iterator != "" {
		at = rungAfter
	}
	k.reopen(ctx, CauseExpired, at)
}
