package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lockstream/lockstream/lockclient"
)

// contend takes the lock again and again until ctx ends.
func (w *worker) contend(ctx context.Context, c contention) {
	for ctx.Err() == nil {
		if err := w.turn(ctx, c); err != nil && ctx.Err() == nil {
			w.emit(event{Kind: evFailed, Lock: c.Lock, Text: err.Error()})
			return
		}
		sleep(ctx, c.Pause)
	}
}

// turn is one hold: acquire, work, release.
func (w *worker) turn(ctx context.Context, c contention) error {
	called := now()
	l, err := w.locks.Acquire(ctx, c.Lock)
	if err != nil {
		return err
	}
	by := w.traffic.wakeOf(c.Lock, l.FencingToken())
	w.emit(event{Kind: evAcquired, Lock: c.Lock, Token: l.FencingToken(), Called: called, By: string(by)})

	if c.Lock == hotLock && w.isLongHold() {
		w.holdAndIgnore(l)
	} else {
		err = w.work(l, c.HoldMin+rand.N(c.HoldMax-c.HoldMin))
	}
	return errors.Join(err, w.release(ctx, l))
}

// work uses the lock for a while and writes while it holds it.
func (w *worker) work(l *lockclient.Lease, d time.Duration) error {
	if !sleep(l.Context(), d) {
		return nil // the lease was lost: what the lock protects is not ours any more
	}
	err := w.write(l)
	if errors.Is(err, errFenced) && errors.Is(l.Err(), lockclient.ErrLost) {
		return nil // lost between the look at the context and the write: nothing was written
	}
	return err
}

// write counts the hold. The held check decides, so the lease's end does not cut the
// request off: its outcome would be unknown.
func (w *worker) write(l *lockclient.Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.Context()), writeLimit)
	defer cancel()
	if err := w.counters.add(ctx, l); err != nil {
		return err
	}
	w.emit(event{Kind: evWrote, Lock: l.Name(), Token: l.FencingToken()})
	return nil
}

func (w *worker) release(ctx context.Context, l *lockclient.Lease) error {
	lock, token := l.Name(), l.FencingToken()
	w.emit(event{Kind: evReleasing, Lock: lock, Token: token, At: now()})
	switch err := l.Release(ctx); {
	case errors.Is(err, lockclient.ErrLost):
		return nil // the observer has told
	case err != nil:
		return err
	}
	w.emit(event{Kind: evReleased, Lock: lock, Token: token, HandedOver: w.traffic.handedOver(lock, token)})
	return nil
}

func (w *worker) isLongHold() bool {
	select {
	case <-w.longHold:
		return true
	default:
		return false
	}
}

// holdAndIgnore keeps the lock until the order to write, and then does what a program
// must not do: it ignores that its lease's context has ended, and sends its write. A
// process that was paused at the worst moment does the same without wanting to.
func (w *worker) holdAndIgnore(l *lockclient.Lease) {
	w.emit(event{Kind: evLongHold, Lock: l.Name(), Token: l.FencingToken()})
	select {
	case <-w.proceed:
	case <-time.After(runLimit):
		return
	}
	report := lateReport{Valid: l.Valid()}
	select {
	case <-l.Done():
		cause := context.Cause(l.Context())
		report.Lost = errors.Is(cause, lockclient.ErrLost)
		var lost *lockclient.LostError
		if errors.As(cause, &lost) {
			report.Reason = string(lost.Reason)
		}
	case <-time.After(time.Second):
		report.Reason = "its context has not ended"
	}
	err := w.write(l)
	report.Refused = errors.Is(err, errFenced)
	if err != nil && !report.Refused {
		report.Error = err.Error()
	}
	w.emit(event{Kind: evLateWrite, Lock: l.Name(), Token: l.FencingToken(), Late: &report})
}

// sleep waits for d and reports true, or false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
