package streamwatcher

import (
	"maps"
	"sync"
	"time"
)

// Stats are the counts of a Watcher since New, and its present state.
type Stats struct {
	State         State
	Err           error  // why it is degraded, nil otherwise
	Generation    uint64 // armings begun
	Watches       int    // watches that were not stopped
	Names         int    // names that they wait for
	Subscriptions int    // that were not stopped
	Shards        int    // shards being read

	Requests   map[string]uint64 // calls by operation name
	Polls      uint64            // GetRecords calls that were answered
	EmptyPolls uint64            // of these, without a record
	Records    uint64            // records received, of all items
	Changes    uint64            // of these, of names that somebody waits for
	Wakes      uint64            // mailboxes that a change was put into
	Hints      uint64            // of Changes, without images or with wrong types
	Foreign    uint64            // records of waited names whose item is not a lock
	Stale      uint64            // records left out because they are from before the arming
	Repeated   uint64            // records left out because their shard had shown them before
	Resyncs    uint64            // mailboxes that a resync was put into
	Gaps       map[Cause]uint64
	Throttles  uint64        // calls refused because of their rate
	Lag        time.Duration // age of the newest record when it came, whole seconds; 0 where unknown
	Crowded    bool          // throttled so often that too many processes seem to read this stream
}

// counters collects Stats.
type counters struct {
	mu sync.Mutex
	s  Stats

	throttleWindow time.Time // start of the window that throttles are counted in
	throttleCount  int
}

func (c *counters) update(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counters) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Requests, s.Gaps = maps.Clone(s.Requests), maps.Clone(s.Gaps)
	return s
}

// When throttles are taken for a sign of too many readers.
const (
	crowdedCount  = 3
	crowdedWindow = 5 * time.Minute
)

// throttled counts a refusal and returns true the first time that refusals come so
// often that too many processes must be reading.
func (c *counters) throttled(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Throttles++
	if c.throttleWindow.IsZero() || now.Sub(c.throttleWindow) > crowdedWindow {
		c.throttleWindow, c.throttleCount = now, 0
	}
	c.throttleCount++
	if c.throttleCount < crowdedCount || c.s.Crowded {
		return false
	}
	c.s.Crowded = true
	return true
}
