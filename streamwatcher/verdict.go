package streamwatcher

import (
	"errors"
	"fmt"
	"time"
)

// errNoShards: the service answers, but shows no shard.
var errNoShards = errors.New("no list of the stream's shards")

// verdict says which state the reader is in. Only Live is ready: a list was taken in,
// every leaf of it has answered, and no shard is in trouble. What a list lacked is made
// up for by a resync when it is found.
func (r *reader) verdict(now time.Time) (State, error) {
	switch {
	case r.permanent != nil:
		return Degraded, r.permanent
	case !r.disc.listed:
		if r.disc.failing != nil && now.Sub(r.disc.failingSince) >= failingAfter {
			return Degraded, r.unavailable(r.disc.op, r.disc.failing)
		}
		if now.Sub(r.began) >= degradedAfter {
			return Degraded, r.unavailable("DescribeStream", errNoShards)
		}
		if r.disc.arn == "" {
			return Resolving, nil
		}
		return Listing, nil
	case len(r.unarmed) > 0:
		if now.Sub(r.disc.listedAt) >= degradedAfter {
			return Degraded, r.unavailable("GetRecords", r.failing)
		}
		return Arming, nil
	case len(r.troubles) > 0:
		if now.Sub(r.gapSince) >= degradedAfter {
			return Degraded, r.unavailable("GetRecords", r.failing)
		}
		return Gap, nil
	}
	return Live, nil
}

func (r *reader) unavailable(op string, err error) error {
	if err == nil {
		for _, cause := range r.troubles {
			err = fmt.Errorf("a shard is in trouble: %s", cause)
		}
	}
	return &StreamError{Table: r.w.table, Region: r.w.region, Op: op, Reason: ErrUnavailable, Err: err}
}

// publish makes the verdict known where it has changed.
func (r *reader) publish(now time.Time) {
	if len(r.troubles) == 0 {
		r.gapSince = time.Time{}
	} else if r.gapSince.IsZero() {
		r.gapSince = now
	}
	state, err := r.verdict(now)
	if state == r.state {
		return
	}
	h := &r.w.hub
	h.mu.Lock()
	if h.reader != r { // closed meanwhile
		h.mu.Unlock()
		return
	}
	h.set(state, err)
	h.mu.Unlock()
	r.moved(state, err)
}

// moved tells log and observer of a new state.
func (r *reader) moved(state State, err error) {
	from := r.state
	r.state = state
	switch {
	case err != nil && err.Error() != r.warned:
		r.warned = err.Error()
		r.w.log.Warn("stream reader degraded", "table", r.w.table, "reason", err)
	case state == Gap, state == Live && from == Gap:
		r.w.log.Info("stream reader changed its state", "table", r.w.table, "from", from.String(), "to", state.String())
	default:
		r.w.log.Debug("stream reader changed its state", "table", r.w.table, "from", from.String(), "to", state.String())
	}
	r.w.notify(func(o *Observer) {
		if o.State != nil {
			o.State(from, state, err)
		}
	})
}

// gap counts a cause and tells the observer.
func (r *reader) gap(cause Cause) {
	r.w.counters.update(func(s *Stats) { s.Gaps[cause]++ })
	r.w.notify(func(o *Observer) {
		if o.Gap != nil {
			o.Gap(cause)
		}
	})
}

// everybodyLooks tells all watches that an event may have been missed, without leaving
// the state.
func (r *reader) everybodyLooks() {
	h := &r.w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queueResync(false)
}

// trouble keeps the reader from being live until the shard's next good poll.
func (r *reader) trouble(s *shard, cause Cause) {
	if _, known := r.troubles[s]; known {
		return
	}
	r.troubles[s] = cause
	r.gap(cause)
	r.publish(time.Now())
}

// denied makes the reader degraded until the next attempt from the start.
func (r *reader) denied(err error) {
	r.degrade(&StreamError{Table: r.w.table, Region: r.w.region, Op: "GetRecords", Reason: ErrAccess, Err: err})
}

// degrade stops all reading because of a fault that only an operator can mend.
func (r *reader) degrade(err error) {
	r.restart(true)
	r.permanent = err
	r.retryAt = time.Now().Add(r.chance.jitter(r.w.opt.DegradedRetry, 0.2))
}

// checkClocks looks for a suspended process or machine, and for a clock that was set.
func (r *reader) checkClocks() {
	drift := r.w.drift()
	jump := drift - r.drift
	r.drift = drift
	if jump.Abs() <= driftAllowed {
		return
	}
	r.gap(CauseClock)
	r.w.server.forget()
	if jump >= skipBacklogAfter {
		r.restart(true)
		return
	}
	marked := false
	for _, s := range r.topo.order {
		if s.phase == phaseReading && s.armed {
			s.troubled.Store(true)
			r.troubles[s] = CauseClock
			marked = true
		}
	}
	if !marked {
		r.everybodyLooks()
	}
}

// checkSilence looks for shards that have not answered for too long.
func (r *reader) checkSilence(now time.Time) {
	for _, s := range r.topo.order {
		if s.phase != phaseReading || r.unarmed[s] {
			continue
		}
		if _, known := r.troubles[s]; known {
			continue
		}
		limit := max(silenceLeast, silencePolls*time.Duration(s.interval.Load()))
		if !s.armed {
			if now.Sub(s.began) > silenceLeast {
				r.trouble(s, CauseUnarmed)
			}
			continue
		}
		last := s.lastGood.Load()
		if now.Sub(r.birth)-time.Duration(last) <= limit {
			continue
		}
		s.troubled.Store(true)
		if s.lastGood.Load() == last { // else it answered just now, maybe before it saw the flag
			r.trouble(s, CauseSilent)
		}
	}
}
