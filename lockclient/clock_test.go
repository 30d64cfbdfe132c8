package lockclient

import (
	"sync/atomic"
	"testing"
	"time"
)

// skewedClock is the virtual clock with jumps of the boot-time and the wall clock, as a
// machine has them that sleeps or whose clock is set.
type skewedClock struct{ boot, wall atomic.Int64 }

var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c *skewedClock) read() reading {
	now := time.Now()
	boot := now.Sub(bubbleStart) + time.Duration(c.boot.Load())
	return reading{at: now, boot: boot, skew: time.Duration(c.wall.Load())}
}

func TestTrustOf(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		time.Second: 949 * time.Millisecond, 20 * time.Second: 18999 * time.Millisecond, time.Hour: 57*time.Minute - time.Millisecond,
	} {
		if got := trustOf(lease); got != want {
			t.Errorf("trustOf(%v) = %v, want %v", lease, got, want)
		}
	}
	// The inequality of doc.go, at the worst rates that are promised.
	for _, lease := range []time.Duration{MinLease, DefaultLease, DefaultMaxLease} {
		holder := time.Duration(float64(trustOf(lease)) * 1.02) // a slow clock makes the window longer
		contender := time.Duration(float64(lease) * 0.98)       // a fast one makes the wait shorter
		if holder >= contender {
			t.Errorf("lease %v: holder ends at %v, takeover at %v", lease, holder, contender)
		}
	}
}

func TestServerTime(t *testing.T) {
	var s serverTime
	local := time.Now()
	if _, known, asked := s.now(local); known || asked {
		t.Error("an estimate out of nothing")
	}
	s.saw(time.Time{}, local)
	if got, known, asked := s.now(local); known || !asked || !got.Equal(local.Round(0)) {
		t.Errorf("without a Date: %v %v %v", got, known, asked)
	}
	for _, bad := range []time.Time{time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)} {
		s.saw(bad, local)
		if _, known, _ := s.now(local); known {
			t.Errorf("believed %v", bad)
		}
	}
	date := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	s.saw(date, local)
	s.saw(date, local.Add(900*time.Millisecond)) // the same second of the server
	if got, _, _ := s.now(local.Add(900 * time.Millisecond)); !got.Equal(date.Add(900 * time.Millisecond)) {
		t.Errorf("fell back to %v", got)
	}
	s.saw(date.Add(3*time.Second), local.Add(2*time.Second))
	if got, _, _ := s.now(local.Add(2 * time.Second)); !got.Equal(date.Add(3 * time.Second)) {
		t.Errorf("did not follow to %v", got)
	}
	// A clock that ran fast is forgotten after two windows.
	later := local.Add(2*serverWindow + time.Minute)
	slow := date.Add(2 * serverWindow)
	s.saw(slow, later)
	s.saw(slow.Add(serverWindow+time.Second), later.Add(serverWindow+time.Second))
	now := later.Add(2*serverWindow + 2*time.Second)
	s.saw(slow.Add(2*serverWindow+2*time.Second), now)
	if got, _, _ := s.now(now); got.After(slow.Add(2*serverWindow + 4*time.Second)) {
		t.Errorf("still carried away: %v", got)
	}
}
