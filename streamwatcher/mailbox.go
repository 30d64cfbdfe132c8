package streamwatcher

import (
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// watch is one waiter's mailbox: one slot for the newest change and one bit for a
// resync. All fields but the constants are guarded by the hub's mutex.
type watch struct {
	hub  *hub
	name string
	c    chan struct{} // capacity 1

	serial  uint64 // order of age
	change  lockevent.Change
	full    bool // change holds something that Latest has not taken
	resync  bool
	queued  bool // waits for its turn to be told of a resync
	asking  int  // calls of Ready that are blocked for this watch
	stopped bool
}

// C implements lockevent.Watch.
func (w *watch) C() <-chan struct{} { return w.c }

// Latest implements lockevent.Watch.
func (w *watch) Latest() (lockevent.Change, bool) {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	resync, full, change := w.resync, w.full, w.change
	w.resync, w.full, w.change = false, false, lockevent.Change{}
	if resync {
		return lockevent.Change{Name: w.name, Kind: lockevent.Resync, SeenAt: time.Now()}, true
	}
	return change, full
}

// Stop implements lockevent.Watch.
func (w *watch) Stop() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	w.hub.remove(w)
}

// put stores a change and signals. An older change than the stored one still signals,
// but does not replace it.
func (w *watch) put(c lockevent.Change) {
	if !w.full || !older(c.Sequence, w.change.Sequence) {
		w.change, w.full = c, true
	}
	w.signal()
}

// putResync stores the word that an event may have been missed, and signals.
func (w *watch) putResync() {
	w.resync = true
	w.signal()
}

func (w *watch) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// older compares two sequence numbers: decimal strings of any length.
func older(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}
