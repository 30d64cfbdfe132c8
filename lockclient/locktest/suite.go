package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/lockstream/lockstream/lockclient"
)

// Backend is a store of locks under test.
type Backend struct {
	// Process returns a locker like another process's: all of one Backend share the store
	// and nothing else. The suite closes what it got.
	Process func() lockclient.Locker
	// Lose takes the lock called name away from its present holder, by whatever makes a
	// holder of this backend lose a lock. Without it the checks of a loss are skipped.
	Lose func(name string)
	// Waiting returns when a contender of another process than the holder's waits for the
	// lock called name, or fails the test. Without it the suite waits for
	// SuiteOptions.Quiet in its place.
	Waiting func(name string)
}

// SuiteOptions configure TestLocker. The zero value of each field is its default.
type SuiteOptions struct {
	// Run runs one check's body; synctest.Test runs it in virtual time. nil: in real time.
	Run func(t *testing.T, body func(t *testing.T))
	// Patience is how long the suite waits at most for what has to happen; 30 s.
	Patience time.Duration
	// Quiet is how long the suite looks whether something happens that must not; 50 ms. A
	// contender must find a lock held within ten times of it.
	Quiet time.Duration
}

// TestLocker holds a backend to the contract of lockclient.Locker, one subtest for each
// part of it. open is called once in each of them, with its t, and returns a store of its
// own or one that the subtests share: lock names differ.
//
// The contract has no order among contenders, and no promise about how soon one of them
// gets a free lock but that it is within SuiteOptions.Patience.
func TestLocker(t *testing.T, open func(t *testing.T) Backend, optFns ...func(*SuiteOptions)) {
	var o SuiteOptions
	for _, fn := range optFns {
		fn(&o)
	}
	o.setDefaults()
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			o.Run(t, func(t *testing.T) { c.run(t, open(t), o) })
		})
	}
}

func (o *SuiteOptions) setDefaults() {
	if o.Run == nil {
		o.Run = func(t *testing.T, body func(*testing.T)) { body(t) }
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	if o.Quiet <= 0 {
		o.Quiet = 50 * time.Millisecond
	}
}

// check is one part of the contract.
type check struct {
	name string
	fn   func(s *suite)
}

var checks = []check{
	{"Exclusion", exclusion},
	{"NamesAreApart", namesAreApart},
	{"InvalidName", invalidName},
	{"TokenRises", tokenRises},
	{"Hold", holdTellsItsState},
	{"HoldOutlivesAcquire", holdOutlivesAcquire},
	{"ReleaseTwice", releaseTwice},
	{"ReleaseWithEndedContext", releaseWithEndedContext},
	{"ReleaseEndsWait", releaseEndsWait},
	{"ContextEndsWait", contextEndsWait},
	{"EndedContext", endedContext},
	{"Loss", loss},
	{"Close", closeReleases},
	{"CloseEndsWaits", closeEndsWaits},
	{"Do", doRuns},
	{"DoPanics", doPanics},
	{"DoEndsWithContext", doEndsWithContext},
	{"DoLoses", doLoses},
	{"Crowd", crowd},
}

func (c check) run(t testing.TB, b Backend, o SuiteOptions) {
	s := &suite{TB: t, b: b, o: o, name: "locktest-" + rand.Text()}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.WithValue(context.Background(), suiteKey{}, s), 2*o.Patience)
	t.Cleanup(cancel)
	c.fn(s)
}

// suite is one check at work.
type suite struct {
	testing.TB
	b    Backend
	o    SuiteOptions
	ctx  context.Context // ends when the check has taken too long
	name string          // of the check's lock
}

// suiteKey is under what the suite's contexts carry the check, to see whether they are passed on.
type suiteKey struct{}

func (s *suite) process() lockclient.Locker {
	s.Helper()
	k := s.b.Process()
	if k == nil {
		s.Fatal("Process returned nil")
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.Patience)
		defer cancel()
		_ = k.Close(ctx) // a check that is about Close looks at its error
	})
	return k
}

// need ends the check unless the call gave a hold of the lock.
func (s *suite) need(h lockclient.Hold, err error) lockclient.Hold {
	s.Helper()
	switch {
	case err != nil:
		s.Fatalf("acquire: %v", err)
	case h == nil:
		s.Fatal("an acquire returned neither a hold nor an error")
	case h.Name() != s.name:
		s.Fatalf("the hold's name is %q, want %q", h.Name(), s.name)
	case h.FencingToken() <= 0:
		s.Fatalf("the hold's token is %d, want a positive one", h.FencingToken())
	}
	return h
}

// acquire acquires the lock, which is free or will be.
func (s *suite) acquire(k lockclient.Locker) lockclient.Hold {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	return s.need(k.Acquire(ctx, s.name))
}

func (s *suite) try(k lockclient.Locker) lockclient.Hold {
	s.Helper()
	return s.need(k.TryAcquire(s.ctx, s.name))
}

// refused checks that a call gave no hold but these errors.
func (s *suite) refused(what string, h lockclient.Hold, err error, want ...error) {
	s.Helper()
	if h != nil {
		s.Errorf("%s returned a hold", what)
	}
	s.isErr(what, err, want...)
}

func (s *suite) isErr(what string, err error, want ...error) {
	s.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			s.Errorf("%s: error %v, want one that is %v", what, err, w)
		}
	}
}

// mustBeHeld checks that nobody can take the lock now.
func (s *suite) mustBeHeld(k lockclient.Locker) {
	s.Helper()
	h, err := k.TryAcquire(s.ctx, s.name)
	s.refused("TryAcquire of a held lock", h, err, lockclient.ErrHeld)
}

func (s *suite) release(h lockclient.Hold) {
	s.Helper()
	if err := h.Release(s.ctx); err != nil {
		s.Fatalf("release: %v", err)
	}
}

// closed waits for a channel that has to be closed.
func (s *suite) closed(what string, c <-chan struct{}) {
	s.Helper()
	timer := time.NewTimer(s.o.Patience)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
		s.Fatalf("%s did not happen within %s", what, s.o.Patience)
	}
}

// call is an Acquire in a goroutine of its own.
type call struct {
	done chan struct{}
	hold lockclient.Hold
	err  error
}

// contend lets k wait for the lock, which is held by another process.
func (s *suite) contend(ctx context.Context, k lockclient.Locker) *call {
	s.Helper()
	c := &call{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.hold, c.err = k.Acquire(ctx, s.name)
	}()
	if s.b.Waiting != nil {
		s.b.Waiting(s.name)
	} else {
		s.quiet(c)
	}
	select {
	case <-c.done:
		s.Fatalf("Acquire of a held lock returned %v, %v", c.hold, c.err)
	default:
	}
	return c
}

// quiet passes unless the call ends.
func (s *suite) quiet(c *call) {
	timer := time.NewTimer(s.o.Quiet)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
}
