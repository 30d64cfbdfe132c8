package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// outcome is what one phase gave.
type outcome struct {
	past     *history
	counters map[string]int
	faults   faultReport
	took     time.Duration
	given    bool // the endpoint came from the environment
}

// play runs both phases. Whatever happens, no process is left when it returns, unless
// the system did not obey.
func (f *fleet) play(ctx context.Context) (events, polling outcome, err error) {
	if events, err = f.phase(ctx, false); err != nil {
		return events, polling, err
	}
	polling, err = f.phase(ctx, true)
	return events, polling, err
}

// phase sets up a fresh world, runs its script, and checks the counters at the end.
func (f *fleet) phase(ctx context.Context, polling bool) (out outcome, err error) {
	began := time.Now()
	locks := lockNames(polling)
	f.past = newHistory(locks)
	f.title = "1 of 2, pushed events"
	if polling {
		f.title = fmt.Sprintf("2 of 2, polling every %s", short(pollInterval))
	}
	w, err := openWorld(ctx)
	if err != nil {
		return out, err
	}
	if !w.given() {
		f.pids = append(f.pids, w.emulator.PID())
	}
	defer func() {
		f.abort() // does nothing after an orderly stop
		err = errors.Join(err, w.close())
	}()

	if polling {
		f.note(calm, "phase 2: the same cool locks without events; a waiter asks every %s (± 20 %%)", short(pollInterval))
		err = f.pollingScript(ctx, w)
	} else {
		f.note(calm, "phase 1: %d processes wait for pushed events; lease %s, stream read every %s", workers, short(lease), short(watcherPoll))
		out.faults, err = f.eventScript(ctx, w)
	}
	if err == nil {
		err = f.stop(ctx)
	}
	if err == nil {
		out.counters, err = w.readCounters(ctx, locks)
	}
	out.past, out.took, out.given = f.past, time.Since(began), w.given()
	return out, err
}

// eventScript is phase 1: work, a kill, work, a pause past the lease, work.
func (f *fleet) eventScript(ctx context.Context, w *world) (faultReport, error) {
	var report faultReport
	if err := f.spawn(ctx, w, false, allSlots()...); err != nil {
		return report, err
	}
	f.note(calm, "%q has %d contenders in each process; each cool lock has one in two of them", hotLock, hotContenders)
	if err := f.during(ctx, warmTime); err != nil {
		return report, err
	}
	if err := f.killOne(ctx, &report); err != nil {
		return report, err
	}
	if err := f.spawn(ctx, w, false, f.child(report.killed).slot); err != nil {
		return report, err
	}
	f.note(calm, "%s takes the place of %s", workerName(len(f.children)), workerName(report.killed))
	if err := f.during(ctx, betweenTime); err != nil {
		return report, err
	}
	if err := f.pauseOne(ctx, &report); err != nil {
		return report, err
	}
	return report, f.during(ctx, afterTime)
}

// pollingScript is phase 2: work only.
func (f *fleet) pollingScript(ctx context.Context, w *world) error {
	if err := f.spawn(ctx, w, true, allSlots()...); err != nil {
		return err
	}
	return f.during(ctx, pollingTime)
}
