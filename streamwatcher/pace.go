package streamwatcher

import "time"

// How the interval of a shard changes.
const (
	slideFirst  = 30 * time.Second // without a useful event: twice the interval
	slideSecond = 60 * time.Second // four times
	slideMost   = time.Second      // but never beyond this, unless the interval is longer

	throttleCap  = 5 * time.Second
	goodToNarrow = 10 // good polls for each step back
)

// pace decides how long a shard's reader waits between two polls. It belongs to one
// goroutine.
type pace struct {
	base   time.Duration
	extra  time.Duration // added by throttling; 0 when there is none
	good   int
	chance chance
}

// throttled widens the interval.
func (p *pace) throttled() {
	p.extra = min(throttleCap, 2*max(p.extra, p.base))
	p.good = 0
}

// polled narrows it again, slowly.
func (p *pace) polled() {
	if p.extra == 0 {
		return
	}
	if p.good++; p.good < goodToNarrow {
		return
	}
	p.good = 0
	if p.extra = p.extra * 9 / 10; p.extra < p.base {
		p.extra = 0
	}
}

// next returns the delay before the next poll, given the time since anything happened
// that somebody waits for.
func (p *pace) next(quiet time.Duration) time.Duration {
	d := p.base
	switch {
	case quiet >= slideSecond:
		d = max(p.base, min(4*p.base, slideMost))
	case quiet >= slideFirst:
		d = max(p.base, min(2*p.base, slideMost))
	}
	d = p.chance.jitter(d, 0.1)
	if p.extra > 0 {
		d += p.chance.upTo(p.extra)
	}
	return d
}
