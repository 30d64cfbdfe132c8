package streamwatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstream/lockstream/lockevent"
)

// level is the reader's readiness as Ready shows it. It is guarded by the hub's mutex.
type level struct {
	state      State
	err        error  // why it is degraded
	generation uint64 // rises with every arming
	changed    chan struct{}
}

// broadcast wakes every blocked call of Ready.
func (l *level) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// set moves the level to a state. Whoever waits is told of every way from ready to not
// ready and back. The hub's mutex is held.
func (h *hub) set(state State, err error) {
	was, is := h.level.state == Live, state == Live
	h.level.state, h.level.err = state, err
	h.level.broadcast()
	if was != is {
		h.queueResync(is)
	}
}

// errNoWatch is Ready's answer for a watch that was stopped: nothing keeps the reader
// going for it.
var errNoWatch = errors.New("the watch was stopped")

// answer returns what Ready says at this moment, and false when it has to wait. The
// hub's mutex is held.
func (h *hub) answer(w *watch) (error, bool) {
	switch {
	case h.level.state == Closed:
		return lockevent.ErrClosed, true
	case w != nil && w.stopped, h.level.state == Dormant:
		return fmt.Errorf("%w: %w", lockevent.ErrDegraded, errNoWatch), true
	case h.level.state == Live:
		return nil, true
	case h.level.state == Degraded:
		return h.level.err, true
	}
	return nil, false
}

// ready blocks until the level gives an answer for w, which may be nil for a watch of
// another notifier's making, or until ctx ends.
//
// The level is looked at again after ctx has ended: a call that was blocked when the
// reader became live was left out of the resync and must not return an error.
func (h *hub) ready(ctx context.Context, w *watch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if err, ok := h.answer(w); ok {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		changed := h.level.changed
		if w != nil {
			w.asking++
		}
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		h.mu.Lock()
		if w != nil {
			w.asking--
		}
	}
}
