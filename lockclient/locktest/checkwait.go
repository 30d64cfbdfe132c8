package locktest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockstream/lockstream/lockclient"
)

// releaseEndsWait: a contender gets the lock when it is free.
func releaseEndsWait(s *suite) {
	a, b := s.process(), s.process()
	h := s.acquire(a)
	waiter := s.contend(s.ctx, b)
	s.release(h)
	s.closed("the end of the wait", waiter.done)
	next := s.need(waiter.hold, waiter.err)
	if next.FencingToken() <= h.FencingToken() {
		s.Errorf("token %d after %d", next.FencingToken(), h.FencingToken())
	}
	s.mustBeHeld(a)
}

// lookTimes is how many times SuiteOptions.Quiet a contender has for its look at the lock.
const lookTimes = 10

// contextEndsWait: with both errors, at once, and for good.
func contextEndsWait(s *suite) {
	a, b := s.process(), s.process()
	h := s.acquire(a)

	canceled, cancel := context.WithCancel(s.ctx)
	defer cancel()
	waiter := s.contend(canceled, b)
	cancel()
	s.closed("the end of a canceled wait", waiter.done)
	s.refused("a canceled Acquire", waiter.hold, waiter.err, lockclient.ErrHeld, context.Canceled)

	timed, cancel := context.WithTimeout(s.ctx, lookTimes*s.o.Quiet)
	defer cancel()
	waiter = &call{done: make(chan struct{})}
	go func() {
		defer close(waiter.done)
		waiter.hold, waiter.err = b.Acquire(timed, s.name)
	}()
	s.closed("the end of a wait with a deadline", waiter.done)
	s.refused("an Acquire beyond its deadline", waiter.hold, waiter.err, lockclient.ErrHeld, context.DeadlineExceeded)

	s.release(h)
	sleep(s.ctx, s.o.Quiet) // for a contender that has not really gone
	s.release(s.try(a))
}

// endedContext: nothing is acquired for somebody who has gone.
func endedContext(s *suite) {
	a := s.process()
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	h, err := a.Acquire(ctx, s.name)
	s.refused("Acquire with an ended context", h, err, context.Canceled)
	h, err = a.TryAcquire(ctx, s.name)
	s.refused("TryAcquire with an ended context", h, err, context.Canceled)
	s.release(s.try(s.process()))
}

// closeReleases: holds end and locks are free, and nothing is acquired any more.
func closeReleases(s *suite) {
	a, b := s.process(), s.process()
	h := s.acquire(a)
	for range 2 {
		if err := a.Close(s.ctx); err != nil {
			s.Errorf("close: %v", err)
		}
	}
	s.closed("the end of a closed locker's hold", h.Done())
	s.isErr("Err of a closed locker's hold", h.Err(), lockclient.ErrClosed)
	if h.Valid() {
		s.Error("Valid after its locker was closed")
	}
	s.release(s.acquire(b))
	h, err := a.Acquire(s.ctx, s.name)
	s.refused("Acquire after Close", h, err, lockclient.ErrClosed)
	h, err = a.TryAcquire(s.ctx, s.name)
	s.refused("TryAcquire after Close", h, err, lockclient.ErrClosed)
	err = a.Do(s.ctx, s.name, func(context.Context, lockclient.Hold) error {
		s.Error("Do after Close ran its function")
		return nil
	})
	s.isErr("Do after Close", err, lockclient.ErrClosed)
}

// closeEndsWaits: of the closed locker's contenders, and of nobody else.
func closeEndsWaits(s *suite) {
	a, b := s.process(), s.process()
	h := s.acquire(a)
	waiter := s.contend(s.ctx, b)
	if err := b.Close(s.ctx); err != nil {
		s.Errorf("close: %v", err)
	}
	s.closed("the end of a closed locker's wait", waiter.done)
	s.refused("an Acquire whose locker was closed", waiter.hold, waiter.err, lockclient.ErrClosed)
	if !h.Valid() {
		s.Error("closing one locker ended another's hold")
	}
	s.release(h)
}

// The crowd: processes, goroutines in each, turns of each.
const (
	crowdProcesses = 3
	crowdMembers   = 4
	crowdTurns     = 3
)

// crowd: many contenders, one at a time, tokens in the order of holding.
func crowd(s *suite) {
	var (
		work          sync.WaitGroup
		inside, turns atomic.Int32
		last          atomic.Int64
	)
	turn := func(ctx context.Context, h lockclient.Hold) error {
		if inside.Add(1) != 1 {
			s.Error("two holders at once")
		}
		if before := last.Swap(h.FencingToken()); h.FencingToken() <= before {
			s.Errorf("token %d after %d", h.FencingToken(), before)
		}
		if !sleep(ctx, time.Millisecond) {
			s.Errorf("the hold ended: %v", context.Cause(ctx))
		}
		turns.Add(1)
		inside.Add(-1)
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	for range crowdProcesses {
		k := s.process()
		for range crowdMembers {
			work.Go(func() {
				for range crowdTurns {
					if err := k.Do(ctx, s.name, turn); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						s.Errorf("Do: %v", err)
					}
				}
			})
		}
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		work.Wait()
	}()
	s.closed("everybody's turn", all)
	if want := int32(crowdProcesses * crowdMembers * crowdTurns); turns.Load() != want {
		s.Errorf("%d turns within %s, want %d", turns.Load(), s.o.Patience, want)
	}
}
