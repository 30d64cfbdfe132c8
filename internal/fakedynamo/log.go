package fakedynamo

import (
	"maps"
	"sync"
	"time"
)

// LoggedRequest is an entry of the log of requests.
type LoggedRequest struct {
	Number         int64
	Op, Table, Key string
	// At is the time of arrival, by time.Now.
	At time.Time
	// Outcome is empty while the request is under way, "ok", the code of the
	// service's error, "canceled" when the caller's context ended, or "transport
	// error". A write can have been applied with any of them.
	Outcome string
}

// Requests gives what the server remembers about its requests.
type Requests struct{ log *requestLog }

// Requests gives access to the counters and the log.
func (s *Server) Requests() Requests { return Requests{log: &s.log} }

// Count is the number of requests of an operation since the last Reset.
func (r Requests) Count(op string) int {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.log.counts[op]
}

// Counts gives the number of requests by operation since the last Reset.
func (r Requests) Counts() map[string]int {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return maps.Clone(r.log.counts)
}

// Total is the number of requests since the last Reset.
func (r Requests) Total() int {
	n := 0
	for _, c := range r.Counts() {
		n += c
	}
	return n
}

// Log gives the latest requests (see [Options.LogSize]), oldest first.
func (r Requests) Log() []LoggedRequest {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	out := make([]LoggedRequest, 0, len(r.log.ring))
	for i := range r.log.ring {
		out = append(out, *r.log.ring[(r.log.next+i)%len(r.log.ring)])
	}
	return out
}

// Reset forgets all counts and entries.
func (r Requests) Reset() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	clear(r.log.counts)
	r.log.ring, r.log.next = nil, 0
}

// requestLog counts requests and keeps the latest.
type requestLog struct {
	mu     sync.Mutex
	limit  int
	counts map[string]int
	ring   []*LoggedRequest
	next   int // the oldest entry, which is overwritten next once the ring is full
}

func (l *requestLog) arrive(r *Request) *LoggedRequest {
	e := &LoggedRequest{Number: r.Number, Op: r.Op, Table: r.Table, Key: r.Key, At: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[r.Op]++
	if len(l.ring) < l.limit {
		l.ring = append(l.ring, e)
	} else {
		l.ring[l.next] = e
		l.next = (l.next + 1) % l.limit
	}
	return e
}

func (l *requestLog) finish(e *LoggedRequest, outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Outcome = outcome
}
