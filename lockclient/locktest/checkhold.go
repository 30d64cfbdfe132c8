package locktest

import (
	"context"

	"github.com/lockstream/lockstream/lockclient"
)

// exclusion: a lock has one holder, over processes and within one.
func exclusion(s *suite) {
	a, b := s.process(), s.process()
	h := s.acquire(a)
	s.mustBeHeld(a)
	s.mustBeHeld(b)
	waiter := s.contend(s.ctx, b)
	s.quiet(waiter)
	select {
	case <-waiter.done:
		s.Fatalf("Acquire of a held lock returned %v, %v", waiter.hold, waiter.err)
	default:
	}
	s.release(h)
	s.closed("the end of the wait", waiter.done)
	h = s.need(waiter.hold, waiter.err)
	s.mustBeHeld(a)
	s.release(h)
	s.release(s.try(a))
}

// namesAreApart: one lock says nothing about another.
func namesAreApart(s *suite) {
	a, b := s.process(), s.process()
	s.acquire(a)
	s.name += "-other"
	h := s.try(b)
	s.release(h)
}

// invalidName: an empty name is no lock's.
func invalidName(s *suite) {
	k := s.process()
	h, err := k.Acquire(s.ctx, "")
	s.refused(`Acquire("")`, h, err, lockclient.ErrInvalidName)
	h, err = k.TryAcquire(s.ctx, "")
	s.refused(`TryAcquire("")`, h, err, lockclient.ErrInvalidName)
	err = k.Do(s.ctx, "", func(context.Context, lockclient.Hold) error {
		s.Error(`Do("") ran its function`)
		return nil
	})
	s.isErr(`Do("")`, err, lockclient.ErrInvalidName)
}

// tokenRises: with every acquire, whoever acquires and however.
func tokenRises(s *suite) {
	ks := []lockclient.Locker{s.process(), s.process()}
	last := int64(0)
	for i := range 6 {
		k := ks[i/2%2]
		h := s.acquire(k)
		if i%3 == 2 {
			s.release(h)
			h = s.try(k)
		}
		if h.FencingToken() <= last {
			s.Errorf("token %d after %d", h.FencingToken(), last)
		}
		last = h.FencingToken()
		s.release(h)
	}
}

// holdTellsItsState: while it holds, and after its release.
func holdTellsItsState(s *suite) {
	h := s.acquire(s.process())
	select {
	case <-h.Done():
		s.Error("Done is closed while the hold holds")
	default:
	}
	if !h.Valid() || h.Err() != nil || h.Context().Err() != nil {
		s.Errorf("a fresh hold: Valid %t, Err %v, context %v", h.Valid(), h.Err(), h.Context().Err())
	}
	s.release(h)
	s.closed("Done after a release", h.Done())
	s.closed("the end of the context after a release", h.Context().Done())
	if h.Valid() {
		s.Error("Valid after a release")
	}
	s.isErr("Err after a release", h.Err(), lockclient.ErrReleased)
	s.isErr("the cause of the context after a release", context.Cause(h.Context()), lockclient.ErrReleased)
}

// holdOutlivesAcquire: ctx bounds the wait only, and its values go on.
func holdOutlivesAcquire(s *suite) {
	k := s.process()
	ctx, cancel := context.WithCancel(s.ctx)
	h := s.need(k.Acquire(ctx, s.name))
	cancel()
	if !h.Valid() || h.Err() != nil || h.Context().Err() != nil {
		s.Errorf("a hold whose acquire's context has ended: Valid %t, Err %v, context %v", h.Valid(), h.Err(), h.Context().Err())
	}
	if h.Context().Value(suiteKey{}) != s {
		s.Error("the hold's context has not the values of the acquire's")
	}
	s.mustBeHeld(s.process())
	s.release(h)
}

// releaseTwice: the second one says so and touches no newer hold.
func releaseTwice(s *suite) {
	a, b := s.process(), s.process()
	h := s.acquire(a)
	s.release(h)
	s.isErr("the second release", h.Release(s.ctx), lockclient.ErrReleased)
	for _, k := range []lockclient.Locker{b, a} {
		newer := s.acquire(k)
		s.isErr("a release of an older hold", h.Release(s.ctx), lockclient.ErrReleased)
		if !newer.Valid() {
			s.Error("a second release ended a newer hold")
		}
		s.mustBeHeld(b)
		s.release(newer)
	}
}

// releaseWithEndedContext: a release goes through, so that it can be deferred.
func releaseWithEndedContext(s *suite) {
	h := s.acquire(s.process())
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if err := h.Release(ctx); err != nil {
		s.Errorf("release with an ended context: %v", err)
	}
	s.release(s.try(s.process()))
}

// loss: the holder is told, and cannot take it for its own doing.
func loss(s *suite) {
	s.losable()
	a := s.process()
	h := s.acquire(a)
	s.b.Lose(s.name)
	s.closed("the end of a lost hold", h.Done())
	s.closed("the end of a lost hold's context", h.Context().Done())
	s.isErr("Err after a loss", h.Err(), lockclient.ErrLost)
	s.isErr("the cause of the context after a loss", context.Cause(h.Context()), lockclient.ErrLost)
	if h.Valid() {
		s.Error("Valid after a loss")
	}
	s.isErr("a release after a loss", h.Release(s.ctx), lockclient.ErrLost)
}

func (s *suite) losable() {
	s.Helper()
	if s.b.Lose == nil {
		s.Skip("this backend has no way to lose a hold")
	}
}
