package streamwatcher

import (
	"context"
	"sync"
	"time"
)

const (
	tick          = 250 * time.Millisecond // how often silence and clocks are checked
	silenceLeast  = 2 * time.Second        // silence of a shard that is a gap at least
	silencePolls  = 3                      // or this many intervals
	driftAllowed  = time.Second            // between the wall clock and the monotonic clock
	degradedAfter = 10 * time.Second       // of a gap, before Ready stops to block
	failingAfter  = 2 * time.Second        // of failures before the first list, likewise
	armingAtOnce  = 16                     // shards whose first answer is awaited together
	tellPause     = time.Second            // divided by the rate: between two resyncs
)

// reader is one run from the first watch to dormancy or Close. Its run goroutine owns
// every field; workers send it functions to run.
type reader struct {
	w          *Watcher
	birth      time.Time
	ctx        context.Context // of this run
	cancel     context.CancelFunc
	generation uint64
	name       string // of this run, for its chance
	chance     chance // of the run goroutine
	reports    chan report
	poke       chan struct{}
	slots      chan struct{}
	workers    sync.WaitGroup

	state     State
	epoch     uint64          // rises with every start from resolve; older reports are void
	epochCtx  context.Context // of the workers of this epoch
	endEpoch  context.CancelFunc
	began     time.Time // the epoch
	notBefore time.Time // records from before are history, on the server's clock; zero: unknown

	topo      *topology
	disc      discovery
	unarmed   map[*shard]bool  // leaves whose first answer is awaited
	troubles  map[*shard]Cause // shards that keep the reader from being live
	gapSince  time.Time
	warned    string // the last reason for being degraded that was logged
	failing   error  // the last failure of a shard's reader
	permanent error  // only an operator can mend it
	retryAt   time.Time

	drift  time.Duration
	tellAt time.Time
}

// report is a function for the run goroutine, void when its epoch is over.
type report struct {
	epoch uint64
	apply func()
}

func newReader(w *Watcher) *reader {
	r := &reader{
		w: w, birth: time.Now(), state: Dormant, drift: w.drift(),
		reports: make(chan report),
		poke:    make(chan struct{}, 1),
		slots:   make(chan struct{}, armingAtOnce),
	}
	r.ctx, r.cancel = context.WithCancel(w.root)
	return r
}

// run is the reader's one owner of state. It returns when nobody waits or at Close,
// after all its workers.
func (r *reader) run() {
	defer r.ended()
	r.restart(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case rep := <-r.reports:
			if rep.epoch == r.epoch {
				rep.apply()
			}
		case <-r.poke:
			r.nudge()
		case <-timer.C:
		}
		next, more := r.step(time.Now())
		if !more {
			return
		}
		timer.Reset(next)
	}
}

// ended leaves nothing behind.
func (r *reader) ended() {
	r.cancel()
	r.workers.Wait()
	r.w.counters.update(func(s *Stats) { s.Shards = 0 })
}

// post hands a function to the run goroutine and waits until it took it. It is for
// workers, whose ctx ends with their epoch.
func (r *reader) post(ctx context.Context, epoch uint64, f func()) {
	select {
	case r.reports <- report{epoch, f}:
	case <-ctx.Done():
	}
}

// hurry makes slow polls come at once: somebody new waits. It never blocks.
func (r *reader) hurry() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

func (r *reader) nudge() {
	for _, s := range r.topo.order {
		if s.phase != phaseReading {
			continue
		}
		select {
		case s.nudge <- struct{}{}:
		default:
		}
	}
}

func (r *reader) takeSlot(ctx context.Context) bool {
	select {
	case r.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *reader) freeSlot() { <-r.slots }

// restart drops everything that is known of the stream and begins with resolve.
func (r *reader) restart(forgetStream bool) {
	if r.endEpoch != nil {
		r.endEpoch()
	}
	r.epoch++
	r.epochCtx, r.endEpoch = context.WithCancel(r.ctx)
	r.began = time.Now()
	r.notBefore = time.Time{}
	r.topo = newTopology()
	r.unarmed = make(map[*shard]bool)
	r.troubles = make(map[*shard]Cause)
	r.gapSince, r.failing = time.Time{}, nil
	if forgetStream {
		r.w.stream.forget()
	}
	r.disc = discovery{arn: r.w.stream.get(r.began), bucket: r.disc.bucket}
}

// step does what is due and returns the time until something is due again, and false
// when the reader has become dormant.
func (r *reader) step(now time.Time) (time.Duration, bool) {
	if r.permanent != nil && !now.Before(r.retryAt) {
		r.permanent = nil
		r.restart(true)
	}
	r.checkClocks()
	r.checkSilence(now)
	r.checkOrphans(now)
	r.publish(now)
	if r.permanent == nil {
		r.discover(now)
	}
	if r.retire(now) {
		return 0, false
	}
	next := min(tick, r.discoverWait(now))
	if wait, any := r.tell(now); any {
		next = min(next, wait)
	}
	return max(next, 0), true
}

// retire makes the reader dormant when nobody has waited for long enough. The decision
// and the state change under the one mutex that Watch takes, so a new watch either
// keeps this reader or starts the next.
func (r *reader) retire(now time.Time) bool {
	h := &r.w.hub
	h.mu.Lock()
	idle := h.reader == r && !h.demand() && now.Sub(h.idleSince) >= r.w.opt.IdleAfter
	if idle {
		h.reader = nil
		h.set(Dormant, nil)
	}
	h.mu.Unlock()
	if idle {
		r.moved(Dormant, nil)
	}
	return idle
}

// tell hands out one resync if one is due, at the rate of the options. It returns the
// time until the next one, and false when nobody is left to tell.
func (r *reader) tell(now time.Time) (time.Duration, bool) {
	if wait := r.tellAt.Sub(now); wait > 0 {
		return wait, true
	}
	if !r.w.hub.tellNext() {
		return 0, false
	}
	r.w.counters.update(func(s *Stats) { s.Resyncs++ })
	pause := tellPause / time.Duration(r.w.opt.ResyncRate)
	r.tellAt = now.Add(pause/2 + r.chance.upTo(pause))
	return r.tellAt.Sub(now), true
}
