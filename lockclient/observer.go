package lockclient

import "time"

// Wake says what let a contender look at the lock again, or take it.
type Wake string

// The kinds of a wake-up.
const (
	WakeImmediate Wake = "immediate" // the first look
	WakeEvent     Wake = "event"     // the notifier told of a change
	WakeHandOver  Wake = "hand-over" // a holder of the same client passed the lock on
	WakeExpiry    Wake = "expiry"    // the holder's observed lease ended
	WakeResync    Wake = "resync"    // the notifier may have missed an event
	WakeFallback  Wake = "fallback"  // nothing was heard for Options.Fallback
	WakePoll      Wake = "poll"      // no notifier, or it is not ready
	WakeBaton     Wake = "baton"     // the contender before this one left, or the holder here ended
)

// Observer has hooks for counting and tracing. Every field may be nil. Hooks are called
// from the goroutine that does the work and must return at once; they may be called
// concurrently. They never receive the lock's data.
type Observer struct {
	// Request is called after each request to the table.
	Request func(RequestEvent)
	// Waiting is called when a contender has finished its look and begins to wait.
	Waiting func(name string)
	// Woke is called when such a wait ends in a look; renewals that only move the
	// observed lease's end do not end it.
	Woke func(name string, by Wake)
	// Acquired is called for every lease that an Acquire or TryAcquire got.
	Acquired func(AcquiredEvent)
	// Renewed is called after every successful renewal.
	Renewed func(name string, token int64)
	// Released is called when a holder gave the lock back or passed it on.
	Released func(ReleasedEvent)
	// Lost is called once for a lease that ended without a release.
	Lost func(*LostError)
	// Recovered is called when a write with an unknown outcome turned out to have been
	// applied.
	Recovered func(op, name string)
}

// RequestEvent is one request to the table.
type RequestEvent struct {
	Op      string // "acquire", "take over", "renew", "hand over", "release", "transact", "read" …
	Name    string
	Outcome string // "ok", "refused" for a condition that did not hold, "conflict" with a transaction, "failed", "unknown"
	Took    time.Duration
}

// AcquiredEvent is one lock that was got.
type AcquiredEvent struct {
	Name   string
	Token  int64
	Wake   Wake
	Waited time.Duration
}

// ReleasedEvent is one lock that was given back.
type ReleasedEvent struct {
	Name       string
	Token      int64
	HandedOver bool // passed to a contender of the same client
}

func (o *Observer) request(e RequestEvent) {
	if o.Request != nil {
		o.Request(e)
	}
}

func (o *Observer) waiting(name string) {
	if o.Waiting != nil {
		o.Waiting(name)
	}
}

func (o *Observer) woke(name string, by Wake) {
	if o.Woke != nil {
		o.Woke(name, by)
	}
}

func (o *Observer) acquired(e AcquiredEvent) {
	if o.Acquired != nil {
		o.Acquired(e)
	}
}

func (o *Observer) renewed(name string, token int64) {
	if o.Renewed != nil {
		o.Renewed(name, token)
	}
}

func (o *Observer) released(e ReleasedEvent) {
	if o.Released != nil {
		o.Released(e)
	}
}

func (o *Observer) lost(e *LostError) {
	if o.Lost != nil {
		o.Lost(e)
	}
}

func (o *Observer) recovered(op, name string) {
	if o.Recovered != nil {
		o.Recovered(op, name)
	}
}
