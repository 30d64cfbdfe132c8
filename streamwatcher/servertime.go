package streamwatcher

import (
	"sync"
	"time"
)

// The years between which the service's time is believed.
var (
	earliestServerTime = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	latestServerTime   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// serverClock estimates the service's time from the Date of its answers. It never uses
// this machine's wall clock, which may be wrong by any amount.
type serverClock struct {
	mu   sync.Mutex
	date time.Time // what an answer said
	at   time.Time // when it came, with its monotonic reading
}

// observe takes in the Date of an answer that came at the given instant. Dates are cut
// to whole seconds, so the largest estimate is the best.
func (c *serverClock) observe(date, at time.Time) {
	if date.Before(earliestServerTime) || date.After(latestServerTime) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() || date.After(c.date.Add(at.Sub(c.at))) {
		c.date, c.at = date, at
	}
}

// forget drops the estimate; the monotonic clock may have stood still.
func (c *serverClock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date = time.Time{}
}

// now returns the estimate, and false when no answer had a Date.
func (c *serverClock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return time.Time{}, false
	}
	return c.date.Add(time.Since(c.at)), true
}
