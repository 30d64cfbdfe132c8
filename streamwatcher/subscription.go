package streamwatcher

import (
	"context"

	"github.com/lockstream/lockstream/lockevent"
)

// SubscribeOptions choose what a subscription receives. The zero value of each field is
// its default.
type SubscribeOptions struct {
	// Prefix leaves out the locks whose names do not begin with it.
	Prefix string
	// Renewals lets renewals in, which are most of all changes.
	Renewals bool
	// Buffer is how many changes are kept for a subscriber that is slow. Default 1,024.
	Buffer int
}

const defaultBuffer = 1024

// Subscription receives the changes of all locks, or of those with a prefix. Unlike a
// Watch it gets every one of them, in order for each lock, and a Resync in the place of
// those that it may have missed. Next belongs to one goroutine.
type Subscription struct {
	hub *hub
	opt SubscribeOptions
	c   chan struct{} // capacity 1

	// Guarded by the hub's mutex.
	ring    []lockevent.Change
	first   int // of ring, in use with count
	count   int
	stopped bool
}

// Subscribe begins to collect changes and starts the reader on demand, as a Watch does.
// The first change is a Resync, once the reader is live: from then on every change comes,
// so that is the moment to read what there is. Another Resync follows whenever changes may
// have been missed, also because the subscriber was so slow that its buffer ran over: what
// was in it is dropped then. A slow subscriber never delays the reader or another one. The
// caller must Stop the subscription.
func (w *Watcher) Subscribe(optFns ...func(*SubscribeOptions)) *Subscription {
	opt := SubscribeOptions{Buffer: defaultBuffer}
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.Buffer < 1 {
		opt.Buffer = defaultBuffer
	}
	h := &w.hub
	s := &Subscription{hub: h, opt: opt, c: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.level.state == Closed {
		s.stopped = true
		return s
	}
	h.subscribe(s)
	if h.level.state == Live {
		s.put(lockevent.Change{Kind: lockevent.Resync})
	}
	w.demanded()
	return s
}

// Next waits for the next change and returns it. It returns the context's error when ctx
// ends first, and lockevent.ErrClosed after Stop, or after the watcher's Close when
// everything was taken.
func (s *Subscription) Next(ctx context.Context) (lockevent.Change, error) {
	for {
		c, ok, stopped := s.take()
		switch {
		case ok:
			return c, nil
		case stopped:
			return lockevent.Change{}, lockevent.ErrClosed
		}
		select {
		case <-s.c:
		case <-ctx.Done():
			return lockevent.Change{}, ctx.Err()
		}
	}
}

func (s *Subscription) take() (c lockevent.Change, ok, stopped bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.count == 0 {
		return c, false, s.stopped
	}
	c = s.ring[s.first]
	s.ring[s.first] = lockevent.Change{}
	s.first = (s.first + 1) % len(s.ring)
	s.count--
	return c, true, false
}

// Stop ends the subscription and drops what it holds. It is safe to call twice and while
// Next waits.
func (s *Subscription) Stop() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.ring, s.first, s.count = nil, 0, 0
	if !s.stopped {
		s.end()
		s.hub.noDemand()
	}
}

// end makes the subscription's last change the last. The hub's mutex is held, here and
// below.
func (s *Subscription) end() {
	s.stopped = true
	s.hub.unsubscribe(s)
	s.signal()
}

// offer takes a change of a name with its prefix in, if it is of a kind asked for.
func (s *Subscription) offer(c lockevent.Change) bool {
	if c.Kind == lockevent.Renewed && !s.opt.Renewals {
		return false
	}
	if s.count == s.opt.Buffer {
		s.ring, s.first, s.count = nil, 0, 0
		s.put(lockevent.Change{Kind: lockevent.Resync})
	}
	s.put(c)
	return true
}

// resync marks that changes may be missing from here on; once is enough.
func (s *Subscription) resync() {
	if s.count > 0 && s.ring[(s.first+s.count-1)%len(s.ring)].Kind == lockevent.Resync {
		return
	}
	if s.count == s.opt.Buffer {
		s.ring, s.first, s.count = nil, 0, 0
	}
	s.put(lockevent.Change{Kind: lockevent.Resync})
}

// put appends to the ring, which grows as it is needed. Beside Buffer changes there is
// room for the mark that others were dropped.
func (s *Subscription) put(c lockevent.Change) {
	if s.count == len(s.ring) {
		grown := make([]lockevent.Change, max(4, min(2*len(s.ring), s.opt.Buffer+1)))
		for i := range s.count {
			grown[i] = s.ring[(s.first+i)%len(s.ring)]
		}
		s.ring, s.first = grown, 0
	}
	s.ring[(s.first+s.count)%len(s.ring)] = c
	s.count++
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.c <- struct{}{}:
	default:
	}
}
