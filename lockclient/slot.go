package lockclient

import (
	"container/list"
	"context"
	"slices"
	"time"
)

// slot is all that a client knows of one lock name. Client.mu guards it.
type slot struct {
	name   string
	queue  []*waiter // contenders in order; only the first is on the wire
	holder *Lease    // this client's lease that holds the lock or is being given back
	view   view
	viewAt time.Time // the view is at least as new as this
	seen   sightings
	lost   attempts // abandoned writes: an item that shows one of them is to be freed

	handOvers int           // in a row, since the lock last was free for everybody
	standRVN  string        // this client's release after which others come first …
	standTill time.Time     // … until then
	spread    time.Duration // how long to wait at most after the next release; grows with lost races

	idle *list.Element // its place among the slots that are kept for their view only
}

// maxAbandoned bounds the memory for abandoned writes of one lock.
const maxAbandoned = 32

// The spread after a release: nothing until a race was lost.
const (
	firstSpread = 10 * time.Millisecond
	maxSpread   = 160 * time.Millisecond
)

// waiter is one contender in one queue.
type waiter struct {
	opt    AcquireOptions
	values context.Context // whose values the lease's context carries
	start  time.Time
	wake   chan struct{} // capacity 1: the slot changed in a way that concerns it

	// Client.mu guards these.
	onWire bool   // it campaigns: nothing may be handed to it
	gone   bool   // it has left
	lease  *Lease // handed to it
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// slotFor returns the slot of name, made on demand. Client.mu is held.
func (c *Client) slotFor(name string) *slot {
	s := c.locks[name]
	if s == nil {
		s = &slot{name: name}
		c.locks[name] = s
	}
	if s.idle != nil {
		c.idle.Remove(s.idle)
		s.idle = nil
	}
	return s
}

// settleSlot lets go of a slot that nobody uses: it is kept for its view among a bounded
// number of such. Client.mu is held.
func (c *Client) settleSlot(s *slot) {
	if len(s.queue) > 0 || s.holder != nil || s.idle != nil {
		return
	}
	s.idle = c.idle.PushBack(s)
	for c.idle.Len() > maxIdleObservation {
		oldest := c.idle.Remove(c.idle.Front()).(*slot)
		delete(c.locks, oldest.name)
	}
}

// join puts a contender at the end of name's queue.
func (c *Client) join(values context.Context, name string, o AcquireOptions) (*waiter, *slot) {
	w := &waiter{opt: o, values: values, start: time.Now(), wake: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slotFor(name)
	s.queue = append(s.queue, w)
	return w, s
}

// turn is what a contender has to do next.
type turn uint8

const (
	turnWait     turn = iota // until it is signalled
	turnCampaign             // it is the head, and no lease of this client has the lock
	turnHolds                // a lease was handed to it
)

// turnOf says what w has to do, and marks it as campaigning when it is its turn to.
func (c *Client) turnOf(s *slot, w *waiter) turn {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.onWire = false
	switch {
	case w.lease != nil:
		return turnHolds
	case s.holder != nil || s.queue[0] != w:
		return turnWait
	}
	w.onWire = true
	return turnCampaign
}

// leave takes w out of the queue and passes the baton: whoever is first now looks at
// once. It returns a lease that was handed to w meanwhile.
func (c *Client) leave(s *slot, w *waiter) *Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.gone = true
	if i := slices.Index(s.queue, w); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		if i == 0 {
			s.nudge()
		}
	}
	c.settleSlot(s)
	return w.lease
}

// nudge signals the head of the queue.
func (s *slot) nudge() {
	if len(s.queue) > 0 {
		s.queue[0].signal()
	}
}

// successor returns the local contender to whom l may be handed, nil when the lock is to
// be free for everybody: nobody waits here, the head is on the wire itself, the bound of
// hand-overs in a row is reached, or the client closes.
func (c *Client) successor(s *slot, l *Lease) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || s.holder != l || len(s.queue) == 0 || s.queue[0].onWire || s.handOvers >= maxLocalHandOvers {
		return nil
	}
	return s.queue[0]
}

// vacate ends l's place as the holder, with what is known of the lock from then on.
func (c *Client) vacate(s *slot, l *Lease, v view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.holder != l {
		return
	}
	s.holder = nil
	s.setView(v, time.Now())
	switch v.kind {
	case viewReleased:
		s.seen.first(v.version, time.Now())
	case viewHeld: // a lease that ran out: its last version need not be waited for anew
		s.seen.first(v.version, v.firstSeen)
	}
	if v.kind == viewReleased && s.handOvers >= maxLocalHandOvers && len(s.queue) > 0 {
		s.standRVN = v.version.RVN
		s.standTill = time.Now().Add(l.lease / 10)
	}
	s.handOvers = 0
	s.nudge()
	c.settleSlot(s)
}

// abandonedBy keeps attempts of a finished operation, so that the lock is freed should
// one of them show up.
func (s *slot) abandonedBy(as attempts) {
	s.lost = append(s.lost, as...)
	if over := len(s.lost) - maxAbandoned; over > 0 {
		s.lost = slices.Delete(s.lost, 0, over)
	}
}

// lostRace makes this client wait longer from the next release on. Whenever it then
// collides with nobody, whether it got the lock or saw in time that another had it, it
// waits a little less again: only so does a client that lost once not lose for ever. It
// forgets slowly, or else every second release would be a collision.
func (s *slot) lostRace() { s.spread = min(max(2*s.spread, firstSpread), maxSpread) }

func (s *slot) noCollision() {
	if s.spread -= s.spread / 16; s.spread < firstSpread/2 {
		s.spread = 0
	}
}
