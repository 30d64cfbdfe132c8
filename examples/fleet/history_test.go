package main

import (
	"testing"
	"time"
)

// tell feeds events into a history.
func tell(h *history, events ...event) {
	for _, e := range events {
		h.add(e)
	}
}

func TestHistoryFollowsOneLock(t *testing.T) {
	h := newHistory([]string{"cool-1"})
	tell(
		h,
		event{At: 10 * ms, Kind: evAcquired, Worker: 1, Lock: "cool-1", Token: 5, Called: 9 * ms, By: "immediate"},
		event{At: 12 * ms, Kind: evRefused, Worker: 2, Lock: "cool-1", FirstLook: true},
		event{At: 13 * ms, Kind: evWaiting, Worker: 2, Lock: "cool-1"},
		event{At: 19 * ms, Kind: evWrote, Worker: 1, Lock: "cool-1", Token: 5},
		event{At: 20 * ms, Kind: evReleasing, Worker: 1, Lock: "cool-1", Token: 5},
		event{At: 21 * ms, Kind: evReleased, Worker: 1, Lock: "cool-1", Token: 5},
		event{At: 40 * ms, Kind: evWoke, Worker: 2, Lock: "cool-1", By: "event"},
		event{At: 43 * ms, Kind: evAcquired, Worker: 2, Lock: "cool-1", Token: 6, Called: 11 * ms, By: "event"},
	)
	if len(h.holds["cool-1"]) != 2 || h.wrote["cool-1"] != 1 || h.refusedFirst != 1 || h.refused != 0 {
		t.Errorf("holds %d, writes %d, refused %d and %d", len(h.holds["cool-1"]), h.wrote["cool-1"], h.refusedFirst, h.refused)
	}
	if got := h.totalWait(); got != 30*time.Millisecond {
		t.Errorf("waited %v, want 30ms", got)
	}
	pairs := remoteHandoffs(h.holds["cool-1"])
	if len(pairs) != 1 || pairs[0].latency() != 23*time.Millisecond || !pairs[0].waitedFor() {
		t.Errorf("hand-offs are %v", pairs)
	}
	if len(h.recent) != 1 {
		t.Errorf("%d recent hand-offs, want 1", len(h.recent))
	}
	if r := h.row("cool-1", 50*ms); r.holder != "worker 2" || r.since != 7*time.Millisecond || len(r.waiting) != 0 {
		t.Errorf("row is %+v", r)
	}
}

func TestHistoryOfALoss(t *testing.T) {
	h := newHistory([]string{hotLock})
	tell(
		h,
		event{At: 10 * ms, Kind: evAcquired, Worker: 1, Lock: hotLock, Token: 5},
		event{At: 30 * ms, Kind: evLost, Worker: 1, Lock: hotLock, Token: 5, By: "expired"},
		event{At: 31 * ms, Kind: evReleasing, Worker: 1, Lock: hotLock, Token: 5},
	)
	got := h.holds[hotLock][0]
	if !got.lost || got.released || got.end != 30*ms {
		t.Errorf("hold is %+v", got)
	}
}

func TestHistoryEndsWaits(t *testing.T) {
	h := newHistory([]string{hotLock})
	tell(
		h,
		event{At: 10 * ms, Kind: evWaiting, Worker: 1, Lock: hotLock},
		event{At: 10 * ms, Kind: evWaiting, Worker: 2, Lock: hotLock},
	)
	h.killed(1, 20*ms, contentions(0, false))
	h.stopWaits(40 * ms)
	tell(h, event{At: 50 * ms, Kind: evWaiting, Worker: 2, Lock: hotLock})
	if got := h.totalWait(); got != 40*time.Millisecond {
		t.Errorf("waited %v, want 40ms: 10 until the kill and 30 until the stop", got)
	}
	if h.kills(hotLock) != 1 || h.kills("cool-1") != 1 || h.kills("cool-2") != 0 {
		t.Error("a kill counts for the locks that the process contended for")
	}
	if !h.wasKilled(1) || h.wasKilled(2) {
		t.Error("worker 1 was killed")
	}
}

// The cool locks have exactly two contenders, in different processes, one in each.
func TestContentions(t *testing.T) {
	for _, polling := range []bool{false, true} {
		slots := map[string][]int{}
		for slot := range workers {
			for _, c := range contentions(slot, polling) {
				if c.Lock != hotLock && c.Contenders != 1 {
					t.Errorf("%s has %d contenders in one process", c.Lock, c.Contenders)
				}
				if c.Lock != hotLock && c.Pause >= c.HoldMin {
					t.Errorf("%s: nobody would wait when it is released", c.Lock)
				}
				slots[c.Lock] = append(slots[c.Lock], slot)
			}
		}
		if len(slots) != len(lockNames(polling)) {
			t.Errorf("the processes contend for %d locks, of %d", len(slots), len(lockNames(polling)))
		}
		for lock, in := range slots {
			if want := map[bool]int{true: workers, false: 2}[lock == hotLock]; len(in) != want {
				t.Errorf("%s is contended for in slots %v", lock, in)
			}
		}
	}
}
