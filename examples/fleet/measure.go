package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// percentile returns the smallest value that at least the share p of all values do not
// exceed, and 0 without values.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// byToken returns the holds of one lock in the order of their tokens.
func byToken(holds []*hold) []*hold {
	sorted := slices.Clone(holds)
	slices.SortStableFunc(sorted, func(a, b *hold) int { return cmp.Compare(a.token, b.token) })
	return sorted
}

// handoff is a lock that went from one process to another by a plain release.
type handoff struct{ from, to *hold }

// latency is from the call of Release to the return of Acquire.
func (h handoff) latency() time.Duration { return h.to.acquired.sub(h.from.end) }

// waitedFor says that the new holder was there already when the lock was released.
// Otherwise the time is that of its own absence.
func (h handoff) waitedFor() bool { return h.to.called < h.from.end }

// remoteHandoffs pairs the holds of one lock by the order of their tokens.
func remoteHandoffs(holds []*hold) []handoff {
	var all []handoff
	sorted := byToken(holds)
	for i := 1; i < len(sorted); i++ {
		from, to := sorted[i-1], sorted[i]
		if from.released && !from.handedOver && from.worker != to.worker {
			all = append(all, handoff{from, to})
		}
	}
	return all
}

// localHandoffs counts the releases that passed the lock on within a process.
func localHandoffs(holds []*hold) int {
	n := 0
	for _, h := range holds {
		if h.handedOver {
			n++
		}
	}
	return n
}

// coolLatencies are the latencies of the hand-offs on the cool locks, apart from those
// during a fault of a process that contends for the lock.
func (h *history) coolLatencies() []time.Duration {
	var all []time.Duration
	for lock, holds := range h.holds {
		if lock == hotLock {
			continue
		}
		for _, pair := range remoteHandoffs(holds) {
			if pair.waitedFor() && !h.disturbed(lock, pair) {
				all = append(all, pair.latency())
			}
		}
	}
	return all
}

func (h *history) disturbed(lock string, pair handoff) bool {
	return slices.ContainsFunc(h.outages, func(o outage) bool {
		return slices.Contains(o.locks, lock) && o.overlaps(pair.from.end, pair.to.acquired)
	})
}

// checkOrder says whether the holds of one lock prove a broken promise: in the order of
// their tokens, no token may repeat, the times must rise, and no hold may begin before
// the one before it has ended. A process cannot end a hold while it is paused: holds that
// a pause cut into have no end that counts.
func checkOrder(holds []*hold, outages []outage) error {
	var before *hold // the last one whose times count
	sorted := byToken(holds)
	for i, h := range sorted {
		if i > 0 && sorted[i-1].token == h.token {
			return fmt.Errorf("%s: token %d was given to %s and to %s", h.lock, h.token, workerName(sorted[i-1].worker), workerName(h.worker))
		}
		cut, end, err := endOf(h, outages)
		if err != nil {
			return err
		}
		if before != nil {
			if h.acquired <= before.acquired && !cut {
				return fmt.Errorf("%s: token %d is above %d but was acquired %v earlier", h.lock, h.token, before.token, before.acquired.sub(h.acquired))
			}
			_, beforeEnd, _ := endOf(before, outages)
			if h.acquired < beforeEnd {
				return fmt.Errorf("%s: %s (token %d) held it %v before %s (token %d) had ended",
					h.lock, workerName(h.worker), h.token, beforeEnd.sub(h.acquired), workerName(before.worker), before.token)
			}
		}
		if end < h.acquired && !cut {
			return fmt.Errorf("%s: token %d ended before it was acquired", h.lock, h.token)
		}
		if !cut {
			before = h
		}
	}
	return nil
}

// endOf returns when a hold ended, and whether a pause of its process cut into it.
func endOf(h *hold, outages []outage) (cut bool, end instant, err error) {
	end = h.end
	for _, o := range outages {
		switch {
		case o.worker != h.worker:
		case o.killed && end == 0:
			end = o.from
		case !o.killed && h.called <= o.to && (end == 0 || end >= o.from):
			cut = true
		}
	}
	if end == 0 && !cut {
		return cut, end, fmt.Errorf("%s: the hold of %s with token %d never ended", h.lock, workerName(h.worker), h.token)
	}
	return cut, end, nil
}

// checkCounter compares a counter with the writes that were acknowledged. A process that
// was killed may have written once without having told.
func checkCounter(lock string, counter, acknowledged, killed int) error {
	if counter < acknowledged || counter > acknowledged+killed {
		return fmt.Errorf("%s: the counter is %d, with %d acknowledged writes and %d killed processes", lock, counter, acknowledged, killed)
	}
	return nil
}

// perSecond is n in d, per second, and 0 without time.
func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// millis is d in milliseconds with one decimal.
func millis(d time.Duration) float64 { return round(float64(d)/float64(time.Millisecond), 1) }

func round(x float64, decimals int) float64 {
	f := math.Pow10(decimals)
	return math.Round(x*f) / f
}
