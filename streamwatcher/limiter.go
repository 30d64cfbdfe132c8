package streamwatcher

import "time"

// The rate of DescribeStream calls, which all readers of an account share: two a
// second in the long run, with room for a list of many pages or a burst of searches.
const (
	listSpacing = 100 * time.Millisecond
	listRefill  = 500 * time.Millisecond
	listBurst   = 20
)

// bucket holds the allowance of DescribeStream calls.
type bucket struct {
	tokens float64
	filled time.Time // when tokens was right
	last   time.Time // the last call
}

func (b *bucket) fill(now time.Time) {
	if b.filled.IsZero() {
		b.tokens, b.filled = listBurst, now
	}
	b.tokens = min(listBurst, b.tokens+float64(now.Sub(b.filled))/float64(listRefill))
	b.filled = now
}

// wait returns the time until the next call is allowed.
func (b *bucket) wait(now time.Time) time.Duration {
	b.fill(now)
	w := max(0, b.last.Add(listSpacing).Sub(now))
	if b.tokens < 1 {
		w = max(w, time.Duration((1-b.tokens)*float64(listRefill))+1)
	}
	return w
}

func (b *bucket) take(now time.Time) {
	b.fill(now)
	b.tokens--
	b.last = now
}
