package lockclient

import (
	"context"
	"fmt"
	"time"
)

// IsLeader reports whether the elector leads at this moment, by its lease's own clocks:
// see Lease.Valid. It sends nothing.
func (e *Elector) IsLeader() bool {
	t := e.current()
	return t != nil && t.lease.Valid()
}

func (e *Elector) current() *electorTerm {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term
}

// StepDown makes the elector's work return, gives the lock back and leaves it to others
// for StandBack, so that leadership moves once and does not come back at once. Run goes on
// and contends again afterwards.
//
// It waits until the work has returned and the lock was given back, or ctx ends; the
// step-down goes on then all the same. The work itself may call it with its own context:
// it does not wait then, and the work has to return. The error is ErrNotLeading, or ctx's.
func (e *Elector) StepDown(ctx context.Context) error {
	t := e.current()
	if t == nil {
		return e.c.wrap("step down", e.name, ErrNotLeading)
	}
	t.stepDown(ErrSteppedDown)
	if l, ok := LeaseFromContext(ctx); ok && l == t.lease {
		return nil
	}
	select {
	case <-t.over:
		return nil
	case <-ctx.Done():
		return e.c.wrap("step down", e.name, withContextError(ctx, context.Cause(ctx)))
	}
}

// HealthCheck is for a liveness probe. It returns an error when the lease under the work
// should have been renewed and was not, or has ended and the work has not returned, for
// longer than tolerance: then only a restart of the process is sure to end the work. It is
// nil while the elector does not lead. It sends nothing.
//
// 0 is a third of the lease, which is one renewal that was missed. A probe that shall not
// restart the process in a short outage of the table tolerates a whole lease: the error then
// means that the work goes on without leadership.
func (e *Elector) HealthCheck(tolerance time.Duration) error {
	e.mu.Lock()
	t := e.term
	var ended time.Time
	if t != nil {
		ended = t.endedAt
	}
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	l := t.lease
	if tolerance == 0 {
		tolerance = l.lease / 3
	}
	if !ended.IsZero() {
		if late := time.Since(ended); late > tolerance {
			return e.c.wrap("check", e.name, fmt.Errorf("the work has not returned for %s after the end of its lease: %w", late, l.Err()))
		}
		return nil
	}
	late := l.c.opt.clock.read().age(l.window.Load().from) - l.c.renewInterval(l.lease)
	if late <= tolerance || l.outlived.Load() {
		return nil
	}
	err := fmt.Errorf("the lease's renewal is %s late", late)
	if failed := l.failed.Load(); failed != nil {
		err = fmt.Errorf("%w: %w", err, *failed)
	}
	return e.c.wrap("check", e.name, err)
}
