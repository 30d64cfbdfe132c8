package streamwatcher

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	// partialAfter is how long a first list that fails in the middle is waited for
	// before its pages are used.
	partialAfter = 2 * time.Second

	// emptyRetry is the time between two lists of a stream that shows no shard yet.
	emptyRetry = 500 * time.Millisecond

	// listRelief is how many children are searched one by one; beyond, one full list
	// finds them all.
	listRelief = 3

	mostPages = 1000 // of one list; more means that the pages go round
)

// settling is when the shards are listed again after the arming or after a new shard:
// lists can lack shards for a while.
var settling = [...]time.Duration{time.Second, 3 * time.Second, 10 * time.Second}

// discovery is the reader's search for the stream and its shards. At most one call is
// on its way.
type discovery struct {
	arn      string
	inFlight bool
	bucket   bucket
	due      time.Time // of the next call after a failure; zero: none failed
	fails    int

	pass     pass
	passDue  time.Time
	settled  time.Time // since when nothing changed
	settleAt int       // index into settling

	listed       bool // the arming has its list
	listedAt     time.Time
	op           string
	failing      error // the last failure before the first list
	failingSince time.Time
}

// pass is one list of all shards, page by page.
type pass struct {
	shards []types.Shard
	cursor string
	pages  int
	whole  bool // no page failed or was taken out of turn
}

// discoverWait returns the time until discover has something to do, a tick at most.
func (r *reader) discoverWait(now time.Time) time.Duration {
	d := &r.disc
	switch {
	case d.inFlight, r.permanent != nil:
		return tick
	case d.arn == "":
		return max(0, d.due.Sub(now))
	}
	w := max(d.bucket.wait(now), d.due.Sub(now))
	if d.pass.cursor != "" {
		return w
	}
	next := d.passDue
	for _, s := range r.topo.orphans() {
		if s.search.due.Before(next) {
			next = s.search.due
		}
	}
	return max(w, next.Sub(now))
}

// discover starts the call that is due, if any.
func (r *reader) discover(now time.Time) {
	d := &r.disc
	if d.inFlight || now.Before(d.due) {
		return
	}
	if d.arn == "" {
		r.ask(func(ctx context.Context) func() {
			arn, err := r.w.resolve(ctx)
			return func() { r.resolved(arn, err) }
		})
		return
	}
	if d.bucket.wait(now) > 0 {
		return
	}
	if d.pass.cursor != "" || !now.Before(d.passDue) {
		r.askPage(now)
		return
	}
	r.askChildren(now)
}

// ask runs one call in a worker and its result on the run goroutine.
func (r *reader) ask(call func(context.Context) func()) {
	r.disc.inFlight = true
	ctx, epoch := r.epochCtx, r.epoch
	r.workers.Go(func() {
		result := call(ctx)
		r.post(ctx, epoch, func() {
			r.disc.inFlight = false
			result()
		})
	})
}

func (r *reader) resolved(arn string, err error) {
	if err != nil {
		r.discoveryFailed("DescribeTable", err)
		return
	}
	now := time.Now()
	if r.w.stream.put(arn, now) { // sequence numbers of different streams do not compare
		r.w.seen.forget()
	}
	r.disc.arn = arn
	r.disc.recovered()
	r.disc.passDue = now
}

func (r *reader) askPage(now time.Time) {
	d := &r.disc
	d.bucket.take(now)
	if d.pass.cursor == "" {
		d.pass = pass{whole: true}
	}
	in := &dynamodbstreams.DescribeStreamInput{StreamArn: aws.String(d.arn)}
	if d.pass.cursor != "" {
		in.ExclusiveStartShardId = aws.String(d.pass.cursor)
	}
	r.ask(func(ctx context.Context) func() {
		stream, err := r.w.api.describeStream(ctx, in)
		return func() { r.tookPage(stream, err) }
	})
}

// tookPage adds a page to the pass. What is known is used at the end of the pass; when
// a page fails it is used at once, and the pass goes on from there.
func (r *reader) tookPage(stream *types.StreamDescription, err error) {
	d := &r.disc
	now := time.Now()
	if err != nil {
		r.discoveryFailed("DescribeStream", err)
		if classify(err) == faultUnsupported { // the page that the cursor names is gone
			d.pass.cursor, d.pass.whole = "", false
			d.passDue = now
		}
		// The first list decides what is a leaf: it is worth some patience.
		if len(d.pass.shards) > 0 && (d.listed || now.Sub(r.began) >= partialAfter) {
			r.takeIn(d.pass.shards)
			d.pass.shards, d.pass.whole = nil, false
		}
		return
	}
	if r.streamEnded(stream) {
		return
	}
	d.recovered()
	d.pass.shards = append(d.pass.shards, stream.Shards...)
	d.pass.pages++
	next := aws.ToString(stream.LastEvaluatedShardId)
	if next != "" && next != d.pass.cursor && d.pass.pages < mostPages {
		d.pass.cursor = next
		return
	}
	r.finishPass(now)
}

func (r *reader) finishPass(now time.Time) {
	d := &r.disc
	done := d.pass
	d.pass = pass{}
	r.scheduleList(now)
	if len(done.shards) == 0 && done.whole {
		if len(r.topo.shards) == 0 { // a stream so new that it shows no shard yet
			d.passDue = now.Add(r.chance.jitter(emptyRetry, 0.2))
		}
		return
	}
	r.takeIn(done.shards)
	if !done.whole {
		return
	}
	listed := make(map[string]bool, len(done.shards))
	for _, s := range done.shards {
		listed[aws.ToString(s.ShardId)] = true
	}
	r.reconcile(listed)
}

// scheduleList sets the time of the next full list: soon while the shards settle, then
// at the long interval.
func (r *reader) scheduleList(now time.Time) {
	d := &r.disc
	for d.settleAt < len(settling) {
		due := d.settled.Add(settling[d.settleAt])
		d.settleAt++
		if due.After(now) {
			d.passDue = due
			return
		}
	}
	d.passDue = now.Add(r.chance.jitter(r.w.opt.RelistInterval, 0.2))
}

// unsettled starts the quick lists again: the shards have changed.
func (r *reader) unsettled(now time.Time) {
	d := &r.disc
	d.settled, d.settleAt = now, 0
	if d.pass.cursor == "" {
		r.scheduleList(now)
	}
}

// discoveryFailed plans the next attempt, or makes the reader degraded.
func (r *reader) discoveryFailed(op string, err error) {
	d := &r.disc
	now := time.Now()
	var fatal *StreamError
	switch {
	case errors.As(err, &fatal):
		r.degrade(fatal)
		return
	case op == "DescribeStream" && classify(err) == faultAccess:
		r.degrade(r.w.operatorFault(op, err, ErrNoStream))
		return
	case op == "DescribeStream" && classify(err) == faultGone:
		r.streamGone()
		return
	}
	d.fails++
	if d.failing == nil {
		d.failingSince = now
	}
	d.op, d.failing = op, err
	d.due = now.Add(r.chance.backoff(d.fails))
}

func (d *discovery) recovered() {
	d.fails, d.due, d.failing = 0, time.Time{}, nil
}

// streamEnded reports whether the stream was disabled, and begins again with resolve.
func (r *reader) streamEnded(stream *types.StreamDescription) bool {
	if stream.StreamStatus != types.StreamStatusDisabled {
		return false
	}
	r.streamGone()
	return true
}

// streamGone begins again: the table may have a new stream. A stream that goes again and
// again does not make the reader spin.
func (r *reader) streamGone() {
	if len(r.topo.shards) > 0 {
		r.gap(CauseLost)
	}
	fails := r.disc.fails + 1
	r.restart(true)
	r.disc.fails = fails
	r.disc.due = time.Now().Add(r.chance.backoff(fails))
}
