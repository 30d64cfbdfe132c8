package streamwatcher

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

const (
	childFirst    = 50 * time.Millisecond  // between the first two searches for a child
	childMost     = 250 * time.Millisecond // at most, while it is no gap yet
	childTries    = 10                     // searches one by one, then by full lists
	childListed   = 30 * time.Second       // at most between these
	orphanAfter   = 2 * time.Second        // without a child it is a gap
	orphanGivenUp = 5 * time.Minute        // without a child it has none
	lostRetry     = 5 * time.Second        // before a lost shard that is still listed is read again
)

// drained notes that a shard was read to its end and starts the search for its
// children; some may be known already.
func (r *reader) drained(s *shard, position string) { r.finished(s, phaseDrained, position) }

// lost notes that a shard disappeared while it was read.
func (r *reader) lost(s *shard, position string) {
	r.finished(s, phaseLost, position)
	if s.phase == phaseLost {
		r.trouble(s, CauseLost)
	} else { // its child is known and read, but its own last records are not
		r.gap(CauseLost)
		r.everybodyLooks()
	}
	r.disc.passDue = time.Now()
}

func (r *reader) finished(s *shard, p phase, position string) {
	s.phase, s.resume = p, position
	s.began, s.search = time.Now(), search{due: time.Now()}
	s.stop()
	delete(r.unarmed, s)
	if p == phaseDrained {
		delete(r.troubles, s)
	}
	r.startReady()
	r.settleOrphans()
	r.countShards()
}

// settleOrphans ends the search of those whose child is known.
func (r *reader) settleOrphans() {
	for _, s := range r.topo.orphans() {
		if r.topo.hasChild(s.id) {
			s.phase = phaseDone
			delete(r.troubles, s)
		}
	}
}

// checkOrphans looks for finished shards that show no child for too long.
func (r *reader) checkOrphans(now time.Time) {
	for _, s := range r.topo.orphans() {
		if now.Sub(s.began) >= orphanAfter {
			r.trouble(s, CauseOrphan)
		}
	}
}

// askChildren searches the children of the orphan that has waited longest, or lists all
// shards when there are many.
func (r *reader) askChildren(now time.Time) {
	due := r.dueOrphans(now)
	if len(due) == 0 {
		return
	}
	next := due[0]
	for _, s := range due {
		if s.search.due.Before(next.search.due) {
			next = s
		}
	}
	if len(due) > listRelief || next.search.tries >= childTries || r.w.noChildFilter.Load() {
		for _, s := range due {
			s.search.next(now, r.chance)
		}
		r.askPage(now)
		return
	}
	next.search.next(now, r.chance)
	r.disc.bucket.take(now)
	in := &dynamodbstreams.DescribeStreamInput{
		StreamArn:   aws.String(r.disc.arn),
		ShardFilter: &types.ShardFilter{Type: types.ShardFilterTypeChildShards, ShardId: aws.String(next.id)},
	}
	r.ask(func(ctx context.Context) func() {
		stream, err := r.w.api.describeStream(ctx, in)
		return func() { r.tookChildren(stream, err) }
	})
}

func (r *reader) dueOrphans(now time.Time) (due []*shard) {
	for _, s := range r.topo.orphans() {
		if !s.search.due.After(now) {
			due = append(due, s)
		}
	}
	return due
}

// next plans the search after this one.
func (s *search) next(now time.Time, c chance) {
	s.tries++
	if s.tries < childTries {
		s.due = now.Add(min(childMost, childFirst<<(s.tries-1)))
		return
	}
	s.due = now.Add(c.jitter(min(childListed, time.Second<<min(s.tries-childTries, 5)), 0.2))
}

// tookChildren takes in the answer to a search. A server may ignore the filter and
// return the shard itself or all shards: known ones change nothing.
func (r *reader) tookChildren(stream *types.StreamDescription, err error) {
	switch {
	case err == nil:
		if !r.streamEnded(stream) {
			r.disc.recovered()
			if aws.ToString(stream.LastEvaluatedShardId) != "" { // the rest comes with a full list
				r.disc.passDue = time.Now()
			}
			r.takeIn(stream.Shards)
		}
	case classify(err) == faultUnsupported:
		r.w.noChildFilter.Store(true)
	case classify(err) == faultGone:
		r.disc.passDue = time.Now() // the shard or the stream: the list tells
	default:
		r.discoveryFailed("DescribeStream", err)
	}
}

// takeIn merges what a list or search has found and starts what can be read.
func (r *reader) takeIn(found []types.Shard) {
	now := time.Now()
	if !r.disc.listed {
		r.arm(found, now)
		return
	}
	fresh := r.topo.merge(found)
	if len(fresh) > 0 {
		r.unsettled(now)
	}
	for _, s := range fresh {
		if s.late {
			r.gap(CauseLate)
		}
	}
	r.startReady()
	r.settleOrphans()
	r.countShards()
}

// arm takes in the first list of this epoch: its leaves must answer before it is live.
func (r *reader) arm(found []types.Shard, now time.Time) {
	if len(found) == 0 {
		return
	}
	r.topo.begin(found)
	r.disc.listed, r.disc.listedAt = true, now
	if server, ok := r.w.server.now(); ok {
		r.notBefore = server.Add(-startMargin)
	}
	for _, s := range r.topo.order {
		if s.first {
			r.unarmed[s] = true
		}
	}
	r.unsettled(now)
	r.startReady()
	r.countShards()
}

// startReady starts a worker for every shard that may be read.
func (r *reader) startReady() {
	for _, s := range r.topo.startable() {
		r.startShard(s)
	}
}

func (r *reader) startShard(s *shard) {
	ctx, stop := context.WithCancel(r.epochCtx)
	now := time.Now()
	s.phase, s.stop, s.began, s.armed = phaseReading, stop, now, false
	s.trial++
	k := &worker{
		r: r, epoch: r.epoch, shard: s, arn: r.disc.arn,
		origin: rungHorizon, notBefore: r.notBefore, position: s.resume,
		lastGood: now, pace: pace{base: r.w.opt.PollInterval, chance: r.w.chanceFor(fmt.Sprintf("%s/%d/%s/%d", r.name, r.epoch, s.id, s.trial))},
	}
	if s.first && s.trial == 1 {
		k.origin, k.from = rungTime, r.notBefore
	}
	r.workers.Go(func() {
		defer stop()
		k.run(ctx)
	})
}

// readWell notes the first good poll of a shard, and the first after trouble.
func (r *reader) readWell(s *shard) {
	if s.phase != phaseReading {
		return
	}
	began := !s.armed
	s.armed = true
	delete(r.unarmed, s)
	delete(r.troubles, s)
	if s.late && began {
		r.everybodyLooks()
	}
}

// reconcile uses a complete list: shards that are no longer listed are forgotten, lost
// ones that still are get read again, and a child that never comes is given up while
// there are other shards to read. Should it come after all, it is late like any other.
func (r *reader) reconcile(listed map[string]bool) {
	now := time.Now()
	for _, s := range r.topo.forget(listed) {
		if s.missing >= missingLists && r.topo.count(phaseReading) > 0 {
			s.phase = phaseDone
			delete(r.troubles, s)
		}
	}
	for _, s := range r.topo.orphans() {
		switch waited := now.Sub(s.began); {
		case s.phase == phaseLost && listed[s.id] && waited >= lostRetry:
			s.phase = phaseWaiting
		case s.phase == phaseDrained && waited >= orphanGivenUp && r.topo.count(phaseReading) > 0:
			s.phase = phaseDone
			delete(r.troubles, s)
		}
	}
	r.startReady()
	r.countShards()
}

func (r *reader) countShards() {
	n := r.topo.count(phaseReading)
	r.w.counters.update(func(s *Stats) { s.Shards = n })
}
