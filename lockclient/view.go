package lockclient

import (
	"time"

	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// viewKind is what a client believes of a lock.
type viewKind uint8

const (
	viewUnknown viewKind = iota
	viewAbsent
	viewReleased
	viewHeld
)

// view is a client's latest belief about a lock. It decides what is sent, never who
// holds: every write names the version that it believes in.
type view struct {
	kind      viewKind
	version   lockitem.Version
	lease     time.Duration // of the holder, capped
	firstSeen time.Time     // when this version was first seen, on the monotonic clock
	hearsay   bool          // known from an event only: read before a takeover
	owner     string        // "" where only an event told
	label     string
	since     time.Time
	paused    bool
	note      string // the reason of the pause
}

// dead says that the holder left the version unchanged for its whole lease.
func (v view) dead(now time.Time) bool {
	return v.kind == viewHeld && now.Sub(v.firstSeen) >= v.lease
}

// expiry is the earliest takeover.
func (v view) expiry() time.Time { return v.firstSeen.Add(v.lease) }

// sightings remember when the last few versions of one lock were first seen, so that an
// event which comes late cannot make a known version young again.
type sightings struct {
	ring [8]sighting
	next int
}

type sighting struct {
	version lockitem.Version
	at      time.Time
}

// first returns when version was first seen: at, unless it was known before.
func (s *sightings) first(version lockitem.Version, at time.Time) time.Time {
	for _, old := range s.ring {
		if old.version == version && !old.at.IsZero() {
			return old.at
		}
	}
	s.ring[s.next] = sighting{version: version, at: at}
	s.next = (s.next + 1) % len(s.ring)
	return at
}

// knows reports whether version was seen before.
func (s *sightings) knows(version lockitem.Version) bool {
	for _, old := range s.ring {
		if old.version == version && !old.at.IsZero() {
			return true
		}
	}
	return false
}

// observe returns what an answer shows, and makes it the view of s unless something newer
// than the answer's request is known.
func (s *slot) observe(a answer, maxLease time.Duration) view {
	var v view
	switch it, at := a.item, a.received.at; {
	case it == nil:
		v = view{kind: viewAbsent}
	case it.Released:
		s.seen.first(it.Version(), at)
		v = view{kind: viewReleased, version: it.Version(), paused: it.Paused, note: it.PauseNote}
	default:
		v = view{
			kind: viewHeld, version: it.Version(), lease: min(it.Lease, maxLease),
			firstSeen: s.seen.first(it.Version(), at),
			owner:     it.Owner, label: it.Label, since: it.AcquiredAt, paused: it.Paused, note: it.PauseNote,
		}
	}
	if !a.composed.Before(s.viewAt) {
		s.setView(v, a.composed)
	}
	return v
}

// setView makes v what is believed, as of the time at.
func (s *slot) setView(v view, at time.Time) { s.view, s.viewAt = v, at }

// verdict is what an event means for a contender.
type verdict uint8

const (
	verdictWait verdict = iota // nothing to do but to count anew
	verdictFree                // the lock is free by the event: write
	verdictLook                // the event is no ground to write on: read
)

// hear takes an event into the view. It never believes an event over something newer
// that is known: tokens rise, and a token that was released is never held again. A
// version counts as seen from at, which is now: no event can make a lease old.
func (s *slot) hear(ch lockevent.Change, at time.Time, maxLease time.Duration) verdict {
	known := s.view.version.Token
	stale := s.view.kind != viewUnknown && ch.Token != 0 && ch.Token < known
	version := lockitem.Version{RVN: ch.RVN, Token: ch.Token, HasToken: ch.Token != 0}
	past := s.view.kind == viewHeld && s.view.version != version && s.seen.knows(version)
	switch {
	case past && ch.Kind != lockevent.Resync && ch.Kind != lockevent.Deleted:
		return verdictWait // a state that is known to be over: versions never come back
	case ch.Kind == lockevent.Resync || ch.Kind == lockevent.Unknown || stale:
		// A stale one wakes all the same: it may tell of a lock made anew.
		if stale && ch.Held {
			return verdictWait
		}
		return verdictLook
	case ch.Kind == lockevent.Deleted:
		s.setView(view{kind: viewAbsent}, at)
		return verdictFree
	case ch.RVN == "":
		return verdictLook
	case !ch.Held:
		if ch.RVN == s.standRVN {
			return verdictWait // this client's own release, whose turn is another's
		}
		s.seen.first(version, at)
		s.setView(view{kind: viewReleased, version: version}, at)
		return verdictFree
	}
	if s.view.kind == viewReleased && ch.Token <= known {
		if ch.Token == 0 {
			return verdictLook // a foreign lease without a token: old or new, nobody can tell
		}
		return verdictWait
	}
	if s.view.kind == viewHeld && s.view.version == version && !s.view.hearsay {
		return verdictWait // more is known of it from the table itself
	}
	v := view{
		kind: viewHeld, version: version, lease: min(ch.Lease, maxLease),
		firstSeen: s.seen.first(version, at), hearsay: true,
	}
	if s.view.kind == viewHeld && s.view.version.Token == version.Token {
		v.owner, v.label, v.since = s.view.owner, s.view.label, s.view.since
	}
	s.setView(v, at)
	return verdictWait
}
