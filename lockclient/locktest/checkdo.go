package locktest

import (
	"context"
	"errors"

	"github.com/lockstream/lockstream/lockclient"
)

// doRuns: the function runs once, while the lock is held, and its error comes back.
func doRuns(s *suite) {
	a, b := s.process(), s.process()
	boom := errors.New("made by the suite")
	runs := 0
	var inner context.Context
	var held lockclient.Hold
	err := a.Do(s.ctx, s.name, func(ctx context.Context, h lockclient.Hold) error {
		runs++
		inner, held = ctx, s.need(h, nil)
		if !h.Valid() || ctx.Err() != nil {
			s.Errorf("in Do: Valid %t, context %v", h.Valid(), ctx.Err())
		}
		if ctx.Value(suiteKey{}) != s {
			s.Error("the function's context has not the values of Do's")
		}
		s.mustBeHeld(b)
		return boom
	})
	s.isErr("Do", err, boom)
	if runs != 1 {
		s.Fatalf("the function ran %d times", runs)
	}
	if held.Valid() || inner.Err() == nil {
		s.Errorf("after Do: Valid %t, context %v", held.Valid(), inner.Err())
	}
	s.release(s.try(b))
	if err := a.Do(s.ctx, s.name, func(context.Context, lockclient.Hold) error { return nil }); err != nil {
		s.Errorf("Do with a function that succeeds: %v", err)
	}
}

// doPanics: the panic goes on and the lock is free.
func doPanics(s *suite) {
	a := s.process()
	func() {
		defer func() {
			if r := recover(); r != any(suiteKey{}) {
				s.Errorf("recovered %v, want the function's panic", r)
			}
		}()
		_ = a.Do(s.ctx, s.name, func(context.Context, lockclient.Hold) error { panic(suiteKey{}) })
	}()
	s.release(s.try(s.process()))
}

// doEndsWithContext: while it waits, and while the function runs.
func doEndsWithContext(s *suite) {
	a, b := s.process(), s.process()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	err := a.Do(ctx, s.name, func(inner context.Context, _ lockclient.Hold) error {
		timed, stop := context.WithTimeout(s.ctx, lookTimes*s.o.Quiet)
		defer stop()
		err := b.Do(timed, s.name, func(context.Context, lockclient.Hold) error {
			s.Error("Do ran its function while another held the lock")
			return nil
		})
		s.isErr("a Do that waited too long", err, lockclient.ErrHeld, context.DeadlineExceeded)
		cancel()
		s.closed("the end of the function's context", inner.Done())
		sleep(s.ctx, s.o.Quiet)
		s.mustBeHeld(b) // never released while the function runs
		return inner.Err()
	})
	s.isErr("Do", err, context.Canceled)
	s.release(s.try(b))
}

// doLoses: the function's context ends, and the error says why.
func doLoses(s *suite) {
	s.losable()
	err := s.process().Do(s.ctx, s.name, func(ctx context.Context, h lockclient.Hold) error {
		s.b.Lose(s.name)
		s.closed("the end of the function's context", ctx.Done())
		s.isErr("the cause of the function's context", context.Cause(ctx), lockclient.ErrLost)
		if h.Valid() {
			s.Error("Valid after a loss")
		}
		return nil
	})
	s.isErr("Do", err, lockclient.ErrLost)
}
