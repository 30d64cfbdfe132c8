package lockclient

import (
	"sync"
	"time"
)

// Dates outside these bounds are a broken proxy's and not a server's time.
var (
	earliestDate = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	latestDate   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// serverWindow bounds how long an answer counts, so that a monotonic clock that runs
// fast cannot carry the estimate away for ever.
const serverWindow = 5 * time.Minute

// serverTime estimates the server's clock from the Date of its answers: the largest,
// over recent answers, of Date + monotonic time since its receipt. It never uses this
// machine's wall clock unless no Date ever came.
//
// Tokens are made of it, and no lease. A wrong estimate costs a second request or a
// token that jumps; it cannot let a token fall, because an acquire takes at least the
// item's last token plus one.
type serverTime struct {
	mu       sync.Mutex
	current  estimate // of the window that runs
	previous estimate
	answers  int // answers seen, with or without a Date
}

// estimate is the instant of the process's monotonic clock and the server's time at it.
type estimate struct {
	date     time.Time
	received time.Time
	opened   time.Time
}

func (e estimate) at(now time.Time) time.Time {
	if e.date.IsZero() {
		return time.Time{}
	}
	return e.date.Add(now.Sub(e.received))
}

// saw records an answer; date is zero for one without a Date.
func (s *serverTime) saw(date, received time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	if date.Before(earliestDate) || date.After(latestDate) {
		return
	}
	if s.current.date.IsZero() || received.Sub(s.current.opened) > serverWindow {
		s.previous = s.current
		s.current = estimate{date: date, received: received, opened: received}
		return
	}
	if date.After(s.current.at(received)) {
		s.current.date, s.current.received = date, received
	}
}

// dated says whether a Date ever came.
func (s *serverTime) dated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.current.date.IsZero()
}

// now returns the estimate. known is false when no Date ever came and the wall clock
// stands in; asked is false when no answer came at all yet.
func (s *serverTime) now(local time.Time) (t time.Time, known, asked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t = s.current.at(local)
	if p := s.previous.at(local); p.After(t) && local.Sub(s.previous.opened) <= 2*serverWindow {
		t = p
	}
	if t.IsZero() {
		return local.Round(0).UTC(), false, s.answers > 0
	}
	return t.Round(0).UTC(), true, true
}
