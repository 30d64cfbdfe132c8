package lockclient

import "time"

// A reading is one look at the three clocks that judge a lease.
//
// The monotonic clock (inside at) is the one that everything is timed by. The boot-time
// clock also runs while the machine sleeps, which the monotonic clock on Linux does not.
// The wall clock is the only one that can show a machine that was restored from a
// snapshot with its other clocks standing.
type reading struct {
	at   time.Time     // wall and monotonic
	boot time.Duration // since some fixed instant; 0 where the system has no such clock
	skew time.Duration // added to the wall part of at; only a test's clock has one
}

// clock is the one seam for time that judges leases; timers use package time, which
// testing/synctest replaces.
type clock interface{ read() reading }

type systemClock struct{}

func (systemClock) read() reading { return reading{at: time.Now(), boot: bootTime()} }

// since returns the time from r0 to r on each clock.
func (r reading) since(r0 reading) (mono, boot, wall time.Duration) {
	return r.at.Sub(r0.at), r.boot - r0.boot, r.at.Round(0).Sub(r0.at.Round(0)) + r.skew - r0.skew
}

// age is the longest of the three: a holder gives up when any clock says so.
func (r reading) age(r0 reading) time.Duration {
	mono, boot, wall := r.since(r0)
	return max(mono, boot, wall)
}

// window is the time during which a lease may be trusted: from before the write that
// granted or renewed it was sent.
type window struct {
	from  reading
	trust time.Duration
}

// trustOf is the part of a lease that its holder relies on: 95 % less a millisecond.
// Contenders wait the whole lease from after they saw the write, so holder and
// contender stay apart as long as their clocks run at rates within 2 % of each other:
// 0.95·lease·1.02 < lease·0.98.
func trustOf(lease time.Duration) time.Duration {
	return lease/100*95 - time.Millisecond
}

// remaining is what is left of w at now, at most zero when it has passed.
func (w window) remaining(now reading) time.Duration { return w.trust - now.age(w.from) }

// over says whether w has passed at now and which clock found it: the wall clock alone
// is the reason Clock.
func (w window) over(now reading) (Reason, bool) {
	mono, boot, wall := now.since(w.from)
	switch {
	case mono >= w.trust || boot >= w.trust:
		return Expired, true
	case wall >= w.trust:
		return Clock, true
	}
	return "", false
}
