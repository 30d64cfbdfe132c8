package main

import (
	"fmt"
	"time"
)

// The fleet. Holds, pauses and contenders are chosen so that a run stays below 4,000
// stream records, because the emulator slows down as they pile up.
const (
	workers      = 4
	lease        = 3 * time.Second
	watcherPoll  = 50 * time.Millisecond // the default, meant for AWS, is 250 ms
	pollInterval = time.Second           // of contenders without a notifier, ± 20 %

	hotLock       = "hot"
	hotContenders = 8 // in each process
)

// How long each part runs.
const (
	warmTime    = 5 * time.Second // before the first fault
	betweenTime = 4 * time.Second
	afterTime   = 4 * time.Second
	pollingTime = 18 * time.Second
	midHold     = 500 * time.Millisecond // from the start of a long hold to the fault in it
	pastLease   = 300 * time.Millisecond // how long a paused process stays so after a takeover

	// For the clock in the view: the parts above, two takeovers, starts and stops.
	plannedTime = warmTime + betweenTime + afterTime + pollingTime + 2*(midHold+lease) + pastLease
)

// What is waited for at most, and how long a run may take in all.
const (
	setUpLimit      = 20 * time.Second
	remoteLimit     = 2 * time.Minute // creating a table at a given endpoint
	readyLimit      = 10 * time.Second
	stepLimit       = 10 * time.Second
	stopLimit       = 5 * time.Second
	runLimit        = 58 * time.Second
	remoteRunLimit  = 5 * time.Minute
	writeLimit      = 10 * time.Second
	killedWaitLimit = 2 * time.Second
)

// contention is how one process contends for one lock.
type contention struct {
	Lock       string        `json:"lock"`
	Contenders int           `json:"contenders"`
	HoldMin    time.Duration `json:"holdMin"`
	HoldMax    time.Duration `json:"holdMax"`
	// Pause is how long a contender stays away after its release. On a cool lock it is
	// longer than a hand-off and shorter than a hold: so the other process gets the lock,
	// and this one is back and waits before the other releases.
	Pause time.Duration `json:"pause"`
}

// coolLock is the lock that the workers of two neighbouring slots contend for.
func coolLock(slot int) string { return fmt.Sprintf("cool-%d", slot+1) }

func allSlots() []int {
	var slots []int
	for slot := range workers {
		slots = append(slots, slot)
	}
	return slots
}

// lockNames lists the locks, the hot one first when it takes part.
func lockNames(polling bool) []string {
	var names []string
	if !polling {
		names = append(names, hotLock)
	}
	for slot := range workers {
		names = append(names, coolLock(slot))
	}
	return names
}

// contentions are the locks of the worker in a slot: the hot one and two cool ones.
func contentions(slot int, polling bool) []contention {
	cool := contention{Contenders: 1, HoldMin: 300 * time.Millisecond, HoldMax: 400 * time.Millisecond, Pause: 250 * time.Millisecond}
	if polling {
		// A poller needs up to 1.2 s. Holds differ by a whole interval, so that releases
		// fall anywhere between two polls.
		cool.HoldMin, cool.HoldMax, cool.Pause = 1400*time.Millisecond, 2400*time.Millisecond, 1300*time.Millisecond
	}
	var all []contention
	if !polling {
		all = append(all, contention{
			Lock: hotLock, Contenders: hotContenders,
			HoldMin: 10 * time.Millisecond, HoldMax: 30 * time.Millisecond, Pause: 20 * time.Millisecond,
		})
	}
	for _, s := range []int{slot, (slot + workers - 1) % workers} {
		c := cool
		c.Lock = coolLock(s)
		all = append(all, c)
	}
	return all
}
