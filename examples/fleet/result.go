package main

import (
	"fmt"
	"slices"
	"time"
)

// The bounds of a good run.
const (
	maxFailedWrites   = 0.5 // acquiring writes refused for each hand-off
	maxTakeoverLeases = 1.5
	minSpeedUp        = 5.0 // of events over polling
)

// result is the last line of a run.
type result struct {
	HandoffsLocal         int     `json:"handoffs_local"`            // passed on within a process
	HandoffsRemote        int     `json:"handoffs_remote"`           // acquired by another process after a release
	RemoteP50             float64 `json:"remote_p50_ms"`             // release call to acquire return, cool locks, between processes
	RemoteP99             float64 `json:"remote_p99_ms"`             //
	WaiterTableRequests   int     `json:"waiter_table_requests"`     // sent by waiters without an event, expiry or resync
	FailedWrites          float64 `json:"failed_writes_per_handoff"` // refused acquiring writes, first looks included
	TakeoverLeases        float64 `json:"takeover_leases"`           // from the kill to the next acquire by another process, in leases
	StaleWritesRefused    int     `json:"stale_writes_refused"`
	TokensMonotonic       bool    `json:"tokens_monotonic"`
	CounterOK             bool    `json:"counter_ok"`
	PollingP50            float64 `json:"polling_p50_ms"`
	PollingRequests       float64 `json:"polling_requests_per_waiter_per_s"` // without the writes that acquired
	Samples               int     `json:"remote_samples"`
	PollingSamples        int     `json:"polling_samples"`
	FirstLooksRefused     int     `json:"first_looks_refused"`
	LostRaces             int     `json:"lost_races"` // refused after an event
	PausedTakeoverLeases  float64 `json:"paused_takeover_leases"`
	Holds                 int     `json:"holds"`
	WaitedSeconds         float64 `json:"waited_seconds"` // of all contenders on the wire, events phase
	WokenByEvent          int     `json:"woken_by_event"`
	WokenByHandOver       int     `json:"woken_by_hand_over"`
	WokenByExpiry         int     `json:"woken_by_expiry"`
	Processes             int     `json:"processes"`
	ProcessesStillRunning int     `json:"processes_still_running"`
	Seconds               float64 `json:"seconds"`
}

// judge makes the result and lists every broken promise, each in one line.
func judge(events, polling outcome, processes int, survivors []int, took time.Duration) (result, []string) {
	past := events.past
	latencies, pollLatencies := past.coolLatencies(), polling.past.coolLatencies()
	r := result{
		RemoteP50: millis(percentile(latencies, 0.5)), RemoteP99: millis(percentile(latencies, 0.99)),
		PollingP50: millis(percentile(pollLatencies, 0.5)), Samples: len(latencies), PollingSamples: len(pollLatencies),
		WaiterTableRequests: past.asked, FirstLooksRefused: past.refusedFirst, LostRaces: past.refused,
		TakeoverLeases:       round(leases(events.faults.killTakeover), 2),
		PausedTakeoverLeases: round(leases(events.faults.pauseTakeover), 2),
		PollingRequests:      round(polling.past.askedRate(), 2),
		WaitedSeconds:        round(past.totalWait().Seconds(), 1),
		WokenByEvent:         past.wokenBy("event"), WokenByHandOver: past.wokenBy("hand-over"), WokenByExpiry: past.wokenBy("expiry"),
		Processes: processes, ProcessesStillRunning: len(survivors), Seconds: round(took.Seconds(), 1),
	}
	for _, holds := range past.holds {
		r.Holds += len(holds)
		r.HandoffsLocal += localHandoffs(holds)
		r.HandoffsRemote += len(remoteHandoffs(holds))
	}
	if handoffs := r.HandoffsLocal + r.HandoffsRemote; handoffs > 0 {
		r.FailedWrites = round(float64(past.refused+past.refusedFirst)/float64(handoffs), 3)
	}
	if events.faults.late.Refused {
		r.StaleWritesRefused = 1
	}
	orderErrs := append(orderErrors(past), orderErrors(polling.past)...)
	counterErrs := append(counterErrors(events), counterErrors(polling)...)
	r.TokensMonotonic, r.CounterOK = len(orderErrs) == 0, len(counterErrs) == 0

	broken := slices.Concat(orderErrs, counterErrs, r.brokenBounds(), brokenFence(events.faults))
	for _, pid := range survivors {
		broken = append(broken, fmt.Sprintf("process %d was started and has not ended", pid))
	}
	return r, broken
}

// brokenBounds names every figure that is out of its bounds.
func (r result) brokenBounds() []string {
	var broken []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	add(r.WaiterTableRequests > 0, "waiters sent %d requests to the table that no event, expiry or resync asked for; promised: none", r.WaiterTableRequests)
	add(r.HandoffsLocal == 0 || r.HandoffsRemote == 0, "hand-offs: %d within and %d between processes; both must occur", r.HandoffsLocal, r.HandoffsRemote)
	add(r.FailedWrites > maxFailedWrites, "%.3f acquiring writes were refused for each hand-off; promised: at most %v", r.FailedWrites, maxFailedWrites)
	add(r.TakeoverLeases <= 0 || r.TakeoverLeases > maxTakeoverLeases, "the takeover from the killed process took %.2f leases; promised: at most %v", r.TakeoverLeases, maxTakeoverLeases)
	add(r.Samples == 0, "no hand-off between processes on a cool lock was measured")
	add(r.PollingSamples == 0, "no hand-off between polling processes was measured")
	add(r.RemoteP50*minSpeedUp > r.PollingP50, "a hand-off by events takes %.1f ms and one by polling %.1f ms; promised: at least %v times less", r.RemoteP50, r.PollingP50, minSpeedUp)
	return broken
}

// brokenFence names what went wrong with the write after the lease's end.
func brokenFence(f faultReport) []string {
	var broken []string
	switch late := f.late; {
	case late.Error != "":
		broken = append(broken, "the write of the paused process failed for another reason than the held check: "+late.Error)
	case !late.Refused:
		broken = append(broken, "the write of the paused process was accepted after another had taken the lock over")
	}
	if f.late.Valid {
		broken = append(broken, "Lease.Valid was true after a pause past the lease")
	}
	if !f.late.Lost {
		broken = append(broken, "the lease's context had not ended with ErrLost after a pause past the lease: "+f.late.Reason)
	}
	return broken
}

func orderErrors(h *history) []string {
	var broken []string
	for _, lock := range h.locks {
		if len(h.holds[lock]) == 0 {
			broken = append(broken, lock+": nobody ever acquired it")
		} else if err := checkOrder(h.holds[lock], h.outages); err != nil {
			broken = append(broken, err.Error())
		}
	}
	return broken
}

func counterErrors(o outcome) []string {
	var broken []string
	for _, lock := range o.past.locks {
		if err := checkCounter(lock, o.counters[lock], o.past.wrote[lock], o.past.kills(lock)); err != nil {
			broken = append(broken, err.Error())
		}
	}
	return broken
}

// kills counts the killed processes that contended for a lock.
func (h *history) kills(lock string) int {
	n := 0
	for _, o := range h.outages {
		if o.killed && slices.Contains(o.locks, lock) {
			n++
		}
	}
	return n
}

// askedRate is how many requests a waiter sent in a second without an event, apart from
// the writes that acquired: those a contender needs in any case.
func (h *history) askedRate() float64 { return perSecond(h.asked-h.askedWon, h.totalWait()) }

func (h *history) totalWait() time.Duration {
	var sum time.Duration
	for _, d := range h.waited {
		sum += d
	}
	return sum
}

func (h *history) wokenBy(wake string) int {
	n := 0
	for _, wakes := range h.wakes {
		n += wakes[wake]
	}
	return n
}
