package main

import (
	"strings"
	"testing"
	"time"
)

// goodRun is what both phases of a run without a broken promise gave.
func goodRun() (events, polling outcome) {
	past := func(locks []string, latency instant) *history {
		h := newHistory(locks)
		for _, lock := range locks {
			first, second := held(1, 10, 0, 100*ms), held(2, 20, 100*ms+latency, 900*ms)
			second.called = 50 * ms
			third := held(2, 21, 901*ms, 950*ms)
			second.handedOver = lock == hotLock
			first.lock, second.lock, third.lock = lock, lock, lock
			h.holds[lock] = []*hold{first, second, third}
			h.wrote[lock] = 3
		}
		return h
	}
	counters := func(locks []string) map[string]int {
		all := map[string]int{}
		for _, lock := range locks {
			all[lock] = 3
		}
		return all
	}
	events = outcome{past: past(lockNames(false), 30*ms), counters: counters(lockNames(false)), faults: faultReport{
		killTakeover: 3 * time.Second, pauseTakeover: 3 * time.Second,
		late: lateReport{Lost: true, Reason: "expired", Refused: true},
	}}
	polling = outcome{past: past(lockNames(true), 500*ms), counters: counters(lockNames(true))}
	return events, polling
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name   string
		spoil  func(events, polling *outcome)
		broken string // in the only line; "" for a good run
	}{
		{"good", func(_, _ *outcome) {}, ""},
		{"a waiter asked", func(e, _ *outcome) { e.past.add(event{Kind: evAsked, Op: "GetItem", By: "poll"}) }, "waiters sent 1 requests"},
		{"polling waiters ask", func(_, p *outcome) { p.past.add(event{Kind: evAsked, Op: "GetItem", By: "poll"}) }, ""},
		{"many lost races", func(e, _ *outcome) { e.past.refused = 4 }, "were refused for each hand-off"},
		{"some lost races", func(e, _ *outcome) { e.past.refused = 3 }, ""},
		{"many first looks", func(e, _ *outcome) { e.past.refusedFirst = 4 }, "were refused for each hand-off"},
		{"a late takeover", func(e, _ *outcome) { e.faults.killTakeover = 4600 * time.Millisecond }, "1.53 leases"},
		{"no takeover", func(e, _ *outcome) { e.faults.killTakeover = 0 }, "0.00 leases"},
		{"an accepted late write", func(e, _ *outcome) { e.faults.late.Refused = false }, "was accepted"},
		{"a failed late write", func(e, _ *outcome) { e.faults.late = lateReport{Lost: true, Error: "no route"} }, "no route"},
		{"a lease that thinks it holds", func(e, _ *outcome) { e.faults.late.Valid = true }, "Lease.Valid was true"},
		{"a context that goes on", func(e, _ *outcome) { e.faults.late.Lost = false }, "had not ended with ErrLost"},
		{"a token twice", func(e, _ *outcome) { e.past.holds[hotLock][1].token = 10 }, "hot: token 10 was given"},
		{"a token twice by polling", func(_, p *outcome) { p.past.holds["cool-2"][2].token = 20 }, "cool-2: token 20 was given"},
		{"a lock that nobody got", func(e, _ *outcome) {
			delete(e.past.holds, hotLock)
			e.past.wrote[hotLock] = 3
			e.past.holds["cool-1"][1].handedOver = true
		}, "nobody ever acquired"},
		{"a lost write", func(e, _ *outcome) { e.counters["cool-3"] = 2 }, "cool-3: the counter is 2"},
		{"a write too many by polling", func(_, p *outcome) { p.counters["cool-3"] = 4 }, "cool-3: the counter is 4"},
		{"slow events", func(e, _ *outcome) {
			for _, lock := range lockNames(true) {
				e.past.holds[lock][1].acquired = 201 * ms
			}
		}, "at least 5 times less"},
		{"no local hand-off", func(e, _ *outcome) { e.past.holds[hotLock][1].handedOver = false }, "both must occur"},
	} {
		t.Run(test.name, func(t *testing.T) {
			events, polling := goodRun()
			test.spoil(&events, &polling)
			_, broken := judge(events, polling, 11, nil, time.Minute)
			switch {
			case test.broken == "" && len(broken) > 0:
				t.Errorf("broken promises %q, want none", broken)
			case test.broken != "" && (len(broken) != 1 || !strings.Contains(broken[0], test.broken)):
				t.Errorf("broken promises %q, want one with %q", broken, test.broken)
			}
		})
	}
}

func TestJudgeSurvivors(t *testing.T) {
	events, polling := goodRun()
	r, broken := judge(events, polling, 11, []int{4711}, time.Minute)
	if len(broken) != 1 || !strings.Contains(broken[0], "4711") || r.ProcessesStillRunning != 1 {
		t.Errorf("broken promises %q, %d still running", broken, r.ProcessesStillRunning)
	}
}

func TestJudgeWithoutSamples(t *testing.T) {
	events, polling := goodRun()
	for _, lock := range lockNames(true) {
		polling.past.holds[lock] = polling.past.holds[lock][:1]
	}
	if _, broken := judge(events, polling, 11, nil, time.Minute); len(broken) == 0 {
		t.Error("a run without a measured hand-off by polling is no good run")
	}
}

func TestJudgeFigures(t *testing.T) {
	events, polling := goodRun()
	events.past.refused = 3
	r, _ := judge(events, polling, 11, nil, 40*time.Second)
	if r.HandoffsLocal != 1 || r.HandoffsRemote != 5 || r.RemoteP50 != 30 || r.PollingP50 != 500 || r.FailedWrites != 0.5 ||
		r.TakeoverLeases != 1 || r.StaleWritesRefused != 1 || !r.TokensMonotonic || !r.CounterOK || r.Seconds != 40 {
		t.Errorf("result is %+v", r)
	}
}
