package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstream/lockstream/lockclient"
)

// faultReport is what came of the two faults.
type faultReport struct {
	killed       int // worker
	killTakeover time.Duration
	killHeir     int

	paused        int // worker
	pauseTakeover time.Duration
	pausedFor     time.Duration
	late          lateReport
}

// killOne kills a worker in the middle of a hold of the hot lock, and waits until another
// process has the lock.
func (f *fleet) killOne(ctx context.Context, report *faultReport) error {
	c, held, err := f.longHold(ctx)
	if err != nil {
		return err
	}
	f.note(fault, "%s is in the middle of a hold of %q and is killed: SIGKILL to %d", workerName(c.id), hotLock, c.pid())
	c.doomed = true
	at := now()
	f.past.killed(c.id, at, contentions(c.slot, false))
	if err := c.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", workerName(c.id), err)
	}
	next, err := f.takeover(ctx, held)
	if err != nil {
		return err
	}
	report.killed, report.killHeir = c.id, next.Worker
	report.killTakeover = next.At.sub(at)
	f.note(good, "%s took %q over %s later: %.2f of a lease", workerName(next.Worker), hotLock, short(report.killTakeover), leases(report.killTakeover))
	return nil
}

// pauseOne stops a worker in the middle of a hold of the hot lock, past its lease, until
// another process has the lock. Then it goes on and sends the write that it had in mind.
func (f *fleet) pauseOne(ctx context.Context, report *faultReport) error {
	c, held, err := f.longHold(ctx)
	if err != nil {
		return err
	}
	f.note(fault, "%s is in the middle of a hold of %q and is paused: SIGSTOP to %d", workerName(c.id), hotLock, c.pid())
	at := now()
	resumed := f.past.paused(c.id, at, contentions(c.slot, false))
	if err := freeze(c.cmd.Process); err != nil {
		return fmt.Errorf("pause %s: %w", workerName(c.id), err)
	}
	next, err := f.takeover(ctx, held)
	if err != nil {
		return err
	}
	report.paused, report.pauseTakeover = c.id, next.At.sub(at)
	f.note(good, "%s took %q over %s later: %.2f of a lease", workerName(next.Worker), hotLock, short(report.pauseTakeover), leases(report.pauseTakeover))
	if err := f.during(ctx, pastLease); err != nil {
		return err
	}
	f.note(fault, "%s goes on (SIGCONT), ignores that its lease is over and sends its write", workerName(c.id))
	if err := c.send(command{Do: orderWrite}); err != nil {
		return err
	}
	resumed(now())
	report.pausedFor = now().sub(at)
	if err := thaw(c.cmd.Process); err != nil {
		return fmt.Errorf("resume %s: %w", workerName(c.id), err)
	}
	late, err := f.until(ctx, stepLimit, "the late write of "+workerName(c.id), func(e event) bool { return e.Kind == evLateWrite })
	if err != nil {
		return err
	}
	report.late = *late.Late
	switch {
	case report.late.Refused:
		f.note(good, "the held check refused the late write of %s", workerName(c.id))
	case report.late.Error != "":
		f.note(fault, "the late write of %s failed: %s", workerName(c.id), report.late.Error)
	default:
		f.note(fault, "the late write of %s was ACCEPTED", workerName(c.id))
	}
	return nil
}

// longHold orders the next worker that gets the hot lock to keep it from its next hold
// on, and returns in the middle of that hold.
func (f *fleet) longHold(ctx context.Context) (*child, event, error) {
	got, err := f.until(ctx, stepLimit, "a hold of "+hotLock, func(e event) bool {
		// Not a hand-over: several more follow within the process.
		return e.Kind == evAcquired && e.Lock == hotLock && e.By != string(lockclient.WakeHandOver)
	})
	if err != nil {
		return nil, event{}, err
	}
	c := f.child(got.Worker)
	if err := c.send(command{Do: orderHold}); err != nil {
		return nil, event{}, err
	}
	held, err := f.until(ctx, stepLimit, "a long hold of "+workerName(c.id), func(e event) bool {
		return e.Kind == evLongHold && e.Worker == c.id
	})
	if err != nil {
		return nil, event{}, err
	}
	return c, held, f.during(ctx, midHold)
}

// takeover waits until another process has acquired the lock of a hold.
func (f *fleet) takeover(ctx context.Context, held event) (event, error) {
	return f.until(ctx, 2*lease+stepLimit, "a takeover of "+held.Lock, func(e event) bool {
		return e.Kind == evAcquired && e.Lock == held.Lock && e.Worker != held.Worker && e.Token > held.Token
	})
}

// leases is d in leases.
func leases(d time.Duration) float64 { return d.Seconds() / lease.Seconds() }
