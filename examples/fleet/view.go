package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// view shows a run. Its methods belong to one goroutine.
type view interface {
	note(note)
	draw(func() snapshot) // called ten times a second
	close()
}

// note is one line of the story.
type note struct {
	at   time.Duration
	mood mood
	text string
}

type mood uint8

const (
	calm mood = iota
	fault
	good
)

// snapshot is the state of the fleet at one moment.
type snapshot struct {
	title         string
	at, left      time.Duration
	rows          []row
	holds         int
	local, remote int
	p50, p99      time.Duration
	asked         int     // requests of waiters that no event asked for
	askedRate     float64 // the same for each waiter and second, without acquires
	polling       bool
	recent        []handoff
}

// row is the state of one lock.
type row struct {
	lock    string
	holder  string // "" while it is free
	state   string // "killed" or "paused" while the holder is
	token   int64
	since   time.Duration
	waiting []int // workers
	holds   int
	wakes   map[string]int
}

func (f *fleet) snapshot() snapshot {
	h, at := f.past, now()
	latencies := h.coolLatencies()
	s := snapshot{
		title: f.title, at: at.sub(f.began), left: max(0, time.Until(f.endsAt)),
		p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99), asked: h.asked,
		askedRate: h.askedRate(),
		polling:   !slices.Contains(h.locks, hotLock), recent: h.recent,
	}
	for _, lock := range h.locks {
		holds := h.holds[lock]
		s.holds += len(holds)
		s.local += localHandoffs(holds)
		s.remote += len(remoteHandoffs(holds))
		s.rows = append(s.rows, h.row(lock, at))
	}
	return s
}

func (h *history) row(lock string, at instant) row {
	r := row{lock: lock, holds: len(h.holds[lock]), wakes: h.wakes[lock]}
	if held := h.last(lock); held != nil && held.end == 0 {
		r.holder, r.token, r.since = workerName(held.worker), held.token, at.sub(held.acquired)
		for _, o := range h.outages {
			switch {
			case o.worker != held.worker || at < o.from:
			case o.killed:
				r.state = "killed"
			case at < o.to:
				r.state = "paused"
			}
		}
	}
	for id := range h.waiting {
		if id.lock == lock {
			r.waiting = append(r.waiting, id.worker)
		}
	}
	slices.Sort(r.waiting)
	return r
}

// short prints a duration as a person would: "2.4 ms", "31 ms", "2.46 s", "3 s".
func short(d time.Duration) string {
	switch {
	case d > 0 && d%time.Second == 0:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// plainEvery is the time between two lines of progress.
const plainEvery = 4 * time.Second

// plain prints one line for each note, and now and then how far the run is.
type plain struct {
	w    io.Writer
	next time.Time
}

func newPlain(w io.Writer) *plain { return &plain{w: w, next: time.Now().Add(plainEvery)} }

func (p *plain) note(n note) { p.line(n.at, n.text) }

func (p *plain) draw(state func() snapshot) {
	if time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(plainEvery)
	s := state()
	if s.holds == 0 {
		return
	}
	text := fmt.Sprintf("… %d holds; hand-offs: %d within, %d between processes", s.holds, s.local, s.remote)
	if s.p50 > 0 {
		text += " (median " + short(s.p50) + " on cool locks)"
	}
	p.line(s.at, fmt.Sprintf("%s; requests by waiters: %d", text, s.asked))
}

func (p *plain) close() {}

func (p *plain) line(at time.Duration, text string) {
	fmt.Fprintf(p.w, "%6.1f s  %s\n", at.Seconds(), text)
}
