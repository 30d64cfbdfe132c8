package main

import (
	"slices"
	"time"
)

// hold is one lease, from the return of Acquire to the call of Release.
type hold struct {
	lock   string
	worker int
	token  int64
	by     string // what led to it

	called   instant // of Acquire
	acquired instant // its return
	end      instant // the call of Release, or the loss; 0 where neither was seen

	released   bool // Release returned without an error
	handedOver bool // … and the lock went to a contender of the same process
	lost       bool
}

// outage is the time in which a worker was paused, or after which it was dead.
type outage struct {
	worker   int
	locks    []string // that it contended for
	from, to instant
	killed   bool
}

func (o outage) overlaps(from, to instant) bool { return from <= o.to && to >= o.from }

// history is all that was seen in one phase.
type history struct {
	locks   []string
	holds   map[string][]*hold // by lock, in the order of arrival
	wrote   map[string]int     // acknowledged writes
	wakes   map[string]map[string]int
	outages []outage

	refused      int // acquiring writes after an event
	refusedFirst int // acquiring writes of a first look
	asked        int // requests of waiters that no event asked for
	askedWon     int // of these, writes that acquired
	waited       map[string]time.Duration
	requests     int // of all workers that ended in order

	recent  []handoff // the last hand-offs between processes
	open    map[holdID]*hold
	waiting map[waitID]instant
	stopped bool
}

type holdID struct {
	worker int
	leaseID
}

type waitID struct {
	worker int
	lock   string
}

func newHistory(locks []string) *history {
	return &history{
		locks: locks, holds: map[string][]*hold{}, wrote: map[string]int{}, wakes: map[string]map[string]int{},
		waited: map[string]time.Duration{}, open: map[holdID]*hold{}, waiting: map[waitID]instant{},
	}
}

// add takes in one event.
func (h *history) add(e event) {
	wait := waitID{e.Worker, e.Lock}
	id := holdID{e.Worker, leaseID{e.Lock, e.Token}}
	switch e.Kind {
	case evWaiting:
		if h.waiting[wait] == 0 && !h.stopped {
			h.waiting[wait] = e.At
		}
	case evAcquired:
		h.endWait(wait, e.At)
		h.acquired(id, e)
	case evWrote:
		h.wrote[e.Lock]++
	case evReleasing:
		if held := h.open[id]; held != nil && held.end == 0 {
			held.end = e.At
		}
	case evReleased:
		if held := h.open[id]; held != nil {
			held.released, held.handedOver = true, e.HandedOver
			delete(h.open, id)
		}
	case evLost:
		if held := h.open[id]; held != nil {
			held.lost = true
			if held.end == 0 {
				held.end = e.At
			}
			delete(h.open, id)
		}
	case evRefused:
		if e.FirstLook {
			h.refusedFirst++
		} else {
			h.refused++
		}
	case evAsked:
		h.asked++
		if e.Won {
			h.askedWon++
		}
	case evBye:
		h.requests += e.Requests
	}
}

// keptHandoffs is how many hand-offs the view shows.
const keptHandoffs = 4

func (h *history) acquired(id holdID, e event) {
	held := &hold{lock: e.Lock, worker: e.Worker, token: e.Token, by: e.By, called: e.Called, acquired: e.At}
	before := h.last(e.Lock)
	h.holds[e.Lock] = append(h.holds[e.Lock], held)
	h.open[id] = held
	if h.wakes[e.Lock] == nil {
		h.wakes[e.Lock] = map[string]int{}
	}
	h.wakes[e.Lock][e.By]++
	if before != nil && before.worker != held.worker && before.released && e.Lock != hotLock {
		h.recent = append(h.recent, handoff{before, held})
		h.recent = h.recent[max(0, len(h.recent)-keptHandoffs):]
	}
}

// last is the hold of a lock that was told of last.
func (h *history) last(lock string) *hold {
	if all := h.holds[lock]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

func (h *history) endWait(id waitID, at instant) {
	if since, ok := h.waiting[id]; ok {
		h.waited[id.lock] += at.sub(since)
		delete(h.waiting, id)
	}
}

// stopWaits ends the count of waiting time: contenders are about to be told to go.
func (h *history) stopWaits(at instant) {
	for id := range h.waiting {
		h.endWait(id, at)
	}
	h.stopped = true
}

// killed notes that a worker is dead from now on. Its locks are disturbed for a lease and
// what a takeover may take beyond it.
func (h *history) killed(worker int, at instant, locks []contention) {
	for id := range h.waiting {
		if id.worker == worker {
			h.endWait(id, at)
		}
	}
	h.outages = append(h.outages, outage{
		worker: worker, locks: namesOf(locks), from: at, to: at + instant(lease+lease/2), killed: true,
	})
}

// paused notes that a worker is stopped, and returns the function that notes that it goes on.
func (h *history) paused(worker int, at instant, locks []contention) func(instant) {
	h.outages = append(h.outages, outage{worker: worker, locks: namesOf(locks), from: at, to: at + instant(runLimit)})
	i := len(h.outages) - 1
	return func(at instant) { h.outages[i].to = at }
}

func (h *history) wasKilled(worker int) bool {
	return slices.ContainsFunc(h.outages, func(o outage) bool { return o.worker == worker && o.killed })
}

func namesOf(all []contention) []string {
	var names []string
	for _, c := range all {
		names = append(names, c.Lock)
	}
	return names
}
