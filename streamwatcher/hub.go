package streamwatcher

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockstream/lockstream/lockevent"
)

// hub knows who waits for which name and how ready the reader is. Its mutex is held
// for moments only: never over a call to the service, nor over a send that can block.
type hub struct {
	mu            sync.Mutex
	names         map[string][]*watch
	watches       int
	serial        uint64
	queue         []*watch                          // those who must be told of a resync, in this order
	subs          map[string]map[*Subscription]bool // by prefix, so that many of one kind cost little
	subscriptions int

	level      level
	reader     *reader   // nil while dormant or closed
	idleSince  time.Time // when the last watch or subscription was stopped
	lastUseful time.Time // when a watch began, or a change came that somebody waits for
}

// add registers a watch. The caller holds the mutex, here and below unless stated.
func (h *hub) add(w *watch) {
	h.serial++
	w.serial = h.serial
	h.names[w.name] = append(h.names[w.name], w)
	h.watches++
}

func (h *hub) remove(w *watch) {
	if w.stopped {
		return
	}
	w.stopped = true
	rest := slices.DeleteFunc(h.names[w.name], func(o *watch) bool { return o == w })
	if len(rest) == 0 {
		delete(h.names, w.name)
	} else {
		h.names[w.name] = rest
	}
	h.watches--
	h.noDemand()
	if w.asking > 0 {
		h.level.broadcast()
	}
}

// subscribe and unsubscribe register a subscription.
func (h *hub) subscribe(s *Subscription) {
	subs := h.subs[s.opt.Prefix]
	if subs == nil {
		subs = make(map[*Subscription]bool)
		h.subs[s.opt.Prefix] = subs
	}
	subs[s] = true
	h.subscriptions++
}

func (h *hub) unsubscribe(s *Subscription) {
	delete(h.subs[s.opt.Prefix], s)
	if len(h.subs[s.opt.Prefix]) == 0 {
		delete(h.subs, s.opt.Prefix)
	}
	h.subscriptions--
}

// noDemand notes since when nobody waits.
func (h *hub) noDemand() {
	if !h.demand() {
		h.idleSince = time.Now()
	}
}

// demand reports whether anybody waits.
func (h *hub) demand() bool { return h.watches > 0 || h.subscriptions > 0 }

// wanted reports whether anybody wants changes of name. It takes the mutex itself.
func (h *hub) wanted(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.names[name]; ok {
		return true
	}
	for prefix := range h.subs {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// deliver hands a change to all who want it and returns how many watches that were. It
// takes the mutex itself.
func (h *hub) deliver(c lockevent.Change) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := h.names[c.Name]
	if len(waiting) > 0 {
		h.lastUseful = c.SeenAt
	}
	for prefix, subs := range h.subs {
		if !strings.HasPrefix(c.Name, prefix) {
			continue
		}
		for s := range subs {
			if s.offer(c) {
				h.lastUseful = c.SeenAt
			}
		}
	}
	for _, w := range waiting {
		w.put(c)
	}
	return len(waiting)
}

// quiet returns how long nothing happened that anybody waits for. It takes the mutex
// itself.
func (h *hub) quiet() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.lastUseful)
}

// queueResync lines up every watch to be told of a resync, oldest first, behind those
// who still wait for their turn from before. With exceptAsking it leaves out those with
// a blocked call of Ready, whose answer makes them look at the table anyway.
func (h *hub) queueResync(exceptAsking bool) {
	for _, subs := range h.subs {
		for s := range subs {
			s.resync()
		}
	}
	first := len(h.queue)
	for _, ws := range h.names {
		for _, w := range ws {
			if w.queued || exceptAsking && w.asking > 0 {
				continue
			}
			w.queued = true
			h.queue = append(h.queue, w)
		}
	}
	slices.SortFunc(h.queue[first:], func(a, b *watch) int { return int(int64(a.serial) - int64(b.serial)) })
}

// tellNext tells the first in line of a resync. It returns false when nobody was left
// to tell, and takes the mutex itself.
func (h *hub) tellNext() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.queue) > 0 {
		w := h.queue[0]
		h.queue[0] = nil
		h.queue = h.queue[1:]
		w.queued = false
		if !w.stopped {
			w.putResync()
			return true
		}
	}
	h.queue = nil
	return false
}

// tellAll tells everybody at once.
func (h *hub) tellAll() {
	h.queue = nil
	for _, ws := range h.names {
		for _, w := range ws {
			w.queued = false
			w.putResync()
		}
	}
}
