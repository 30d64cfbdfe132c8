package main

import (
	"fmt"
	"io"
)

// summary tells a person what the run showed.
type summary struct {
	w     io.Writer
	paint painter
}

func (s summary) print(r result, broken []string, events, polling outcome) {
	s.head("Waiting for a lock")
	s.compare(r, events, polling)
	s.head("What the faults did")
	s.faults(r, events.faults)
	s.head("What was checked")
	s.promises(r, broken, events, polling)
	s.head("Not the same on AWS")
	s.caveat(r, events.given)
	fmt.Fprintln(s.w)
}

func (s summary) head(text string) { fmt.Fprintf(s.w, "\n%s\n", s.paint.in(bold, text)) }

func (s summary) line(format string, args ...any) { fmt.Fprintf(s.w, "  "+format+"\n", args...) }

func (s summary) compare(r result, events, polling outcome) {
	e, p := events.past.coolLatencies(), polling.past.coolLatencies()
	row := func(what, byEvent, byPoll string) { s.line("%-44s %13s %13s", what, byEvent, byPoll) }
	asked := "none"
	if r.WaiterTableRequests > 0 {
		asked = fmt.Sprintf("%d, BROKEN", r.WaiterTableRequests)
	}
	row("", "by events", "by polling")
	row("cool locks, release to next process: median", short(percentile(e, 0.5)), short(percentile(p, 0.5)))
	row("                                        99 %", short(percentile(e, 0.99)), short(percentile(p, 0.99)))
	row("table requests of a waiter while it waits", asked, fmt.Sprintf("%.1f a second", r.PollingRequests))
	row("such hand-offs measured", fmt.Sprint(r.Samples), fmt.Sprint(r.PollingSamples))
	fmt.Fprintln(s.w)
	if r.RemoteP50 > 0 {
		s.line("A pushed event passes a lock on %.0f times sooner than polling every %s does.", r.PollingP50/r.RemoteP50, short(pollInterval))
	}
	s.line("Waiters spent %.0f s waiting and sent %s that no event and no expiry asked for;",
		r.WaitedSeconds, plural(r.WaiterTableRequests, "request"))
	s.line("by polling it would have been %.0f.", r.WaitedSeconds*r.PollingRequests)
	s.line("There were %s: %d went to another process, %d to the next", plural(r.Holds, "hold"), r.HandoffsRemote, r.HandoffsLocal)
	s.line("contender of the same process, in the same write that released the lock.")
	s.line("%.0f writes in 100 hand-offs of both kinds were refused: a contender tries once before it waits;", r.FailedWrites*100)
	s.line("%s found the lock held; %s lost a race after an event.", plural(r.FirstLooksRefused, "first look"), plural(r.LostRaces, "write"))
}

func (s summary) faults(r result, f faultReport) {
	s.line("Worker %d was killed in mid-hold. Worker %d had the lock %s later: %.2f of a", f.killed, f.killHeir, short(f.killTakeover), r.TakeoverLeases)
	s.line("lease (%s), which counts from the dead holder's last renewal and not from its death.", short(lease))
	s.line("Worker %d was paused for %s in mid-hold, and its lock taken over after %s, likewise.", f.paused, short(f.pausedFor), short(f.pauseTakeover))
	s.line("When it went on, its lease knew that it was over (%s). It sent its write all the same,", f.late.Reason)
	if f.late.Refused {
		s.line("and the table refused it: the held check in the same transaction failed.")
	} else {
		s.line("%s", s.paint.in(red, "and the table did not refuse it."))
	}
}

func (s summary) promises(r result, broken []string, events, polling outcome) {
	total, holds := 0, r.Holds
	for _, n := range events.counters {
		total += n
	}
	for _, n := range polling.counters {
		total += n
	}
	for _, all := range polling.past.holds {
		holds += len(all)
	}
	check := func(ok bool, format string, args ...any) {
		mark := s.paint.in(green, "kept  ")
		if !ok {
			mark = s.paint.in(red, "BROKEN")
		}
		s.line("%s  %s", mark, fmt.Sprintf(format, args...))
	}
	check(r.TokensMonotonic, "fencing tokens rose with every one of %d acquires, and no two holds overlapped", holds)
	check(r.CounterOK, "the counters say %d: every acknowledged write is in them, and no refused one", total)
	if rest := holds - total; rest > 0 {
		s.line("        (%s ended without a write: killed, paused, or stopped with its phase)", plural(rest, "hold"))
	}
	check(r.StaleWritesRefused > 0, "a write after the lease's end was refused")
	check(r.WaiterTableRequests == 0, "waiters sent %d requests to the table on their own", r.WaiterTableRequests)
	check(r.TakeoverLeases > 0 && r.TakeoverLeases <= maxTakeoverLeases, "a dead holder's lock was taken over within %v leases", maxTakeoverLeases)
	check(r.FailedWrites <= maxFailedWrites, "at most %v writes were refused for each hand-off", maxFailedWrites)
	check(r.RemoteP50*minSpeedUp <= r.PollingP50, "events were at least %v times faster than polling", minSpeedUp)
	check(r.ProcessesStillRunning == 0, "%d processes were started, %d have ended", r.Processes, r.Processes-r.ProcessesStillRunning)
	for _, text := range broken {
		s.line("%s", s.paint.in(red, "BROKEN: "+text))
	}
}

func (s summary) caveat(r result, given bool) {
	where := "a local emulator, which shows a change at once"
	if given {
		where = "the endpoint of the environment"
	}
	s.line("This ran for %.0f s on %s.", r.Seconds, where)
	s.line("Each of the %d processes read the stream every %s. On AWS let at most two processes read a", workers, short(watcherPoll))
	s.line("shard and leave the interval at its default of 250 ms: a hand-off then takes about half of")
	s.line("that, and the stream's own delay.")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
