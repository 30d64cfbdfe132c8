package lockclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// replaySeed is the seed of LOCKSTREAM_SEED, 0 without one.
func replaySeed(t *testing.T) uint64 {
	text := os.Getenv("LOCKSTREAM_SEED")
	if text == "" {
		return 0
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// seedCount is how many seeds TestRandomSchedules plays: those of LOCKSTREAM_SEEDS.
func seedCount(t *testing.T) uint64 {
	text := os.Getenv("LOCKSTREAM_SEEDS")
	if text == "" {
		return 30
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	first, last := uint64(1), seedCount(t)
	if seed := replaySeed(t); seed != 0 {
		first, last = seed, seed
	}
	held := 0
	for seed := first; seed <= last; seed++ {
		broken, timeline, n := play(t, seed, twin{})
		held += n
		if broken != "" {
			t.Fatalf("seed %d: %s\nreplay with LOCKSTREAM_SEED=%d\n%s", seed, broken, seed, timeline)
		}
	}
	if held < int(last-first+1)*5 {
		t.Errorf("only %d leases: the runs show nothing", held)
	}
	t.Logf("%d leases", held)
}

// contend acquires, holds and gives back until the faults are over.
func (s *schedule) contend(p *proc, d *dice) {
	for !s.isCalm() && !p.isGone() {
		name := fmt.Sprint("lock-", d.pick(s.plan.names))
		ctx, cancel := context.WithCancel(p.life)
		if d.chance(0.3) {
			time.AfterFunc(d.upTo(2*s.plan.lease), cancel)
		}
		wait := func(o *AcquireOptions) {
			if d.chance(0.2) {
				o.Wait = d.upTo(2*s.plan.lease) + 1
			}
			if d.chance(0.2) {
				o.LeaseDuration = s.plan.lease * 2
			}
		}
		var l *Lease
		var err error
		began := time.Now()
		switch d.pick(6) {
		case 0:
			l, err = p.c.TryAcquire(ctx, name, wait)
			if took := time.Since(began); took > 3*2*s.plan.lease/4 {
				s.breaks("TryAcquire took %v", took)
			}
		case 1:
			err = p.c.Do(ctx, name, func(ctx context.Context) error {
				held, _ := LeaseFromContext(ctx)
				s.got(p, held)
				sleep(ctx, d.upTo(s.plan.lease))
				return nil
			}, wait)
		default:
			l, err = p.c.Acquire(ctx, name, wait)
		}
		if l != nil {
			s.got(p, l)
			s.hold(p, l, d)
		} else if err != nil {
			s.checkError(p, name, err)
		}
		cancel()
		if errors.Is(err, ErrClosed) {
			return
		}
		sleep(s.ended, d.upTo(s.plan.lease/4))
	}
	s.lastHold(p, d)
}

// lastHold waits for the lock with an open context after the faults: the wait must end.
func (s *schedule) lastHold(p *proc, d *dice) {
	if p.isGone() {
		return
	}
	name := fmt.Sprint("lock-", d.pick(s.plan.names))
	s.note("p%d waits for %s for the last time", p.id, name)
	l, err := p.c.Acquire(p.life, name)
	if l == nil {
		if !errors.Is(err, ErrClosed) && !p.isGone() {
			s.breaks("p%d got %v after the faults", p.id, err)
		}
		return
	}
	s.got(p, l)
	if err := l.Release(p.life); err != nil && !p.isGone() && !errors.Is(err, ErrLost) {
		s.breaks("p%d could not release %s after the faults: %v", p.id, name, err)
	}
}

// hold keeps l for a while, renews it by hand by turns, and mostly releases it.
func (s *schedule) hold(p *proc, l *Lease, d *dice) {
	for d.chance(0.5) && l.Valid() && !s.isCalm() {
		sleep(l.Context(), d.upTo(s.plan.lease))
		if d.chance(0.3) {
			ctx, cancel := context.WithTimeout(s.ended, d.upTo(s.plan.lease))
			_ = l.Renew(ctx, []byte(fmt.Sprint(d.pick(100))))
			cancel()
		}
	}
	ctx, cancel := context.WithCancel(s.ended)
	defer cancel()
	if d.chance(0.2) {
		cancel()
	}
	err := l.Release(ctx)
	s.note("p%d released %s/%d: %v", p.id, l.Name(), l.FencingToken(), err)
}

// checkError knows the errors with which an acquire may end in such a run.
func (s *schedule) checkError(p *proc, name string, err error) {
	for _, ok := range []error{ErrHeld, ErrLost, ErrClosed, context.Canceled, ErrWaitElapsed, errRequestTimeout, errReleaseTimeout} {
		if errors.Is(err, ok) {
			return
		}
	}
	if s.plan.faults == 0 && !p.isCut() {
		s.breaks("p%d: acquire of %s without faults: %v", p.id, name, err)
	}
	s.note("p%d acquire of %s: %v", p.id, name, err)
}

// disturb cuts a process off, kills it, sets its clocks or closes its client.
func (s *schedule) disturb(p *proc, d *dice) {
	for sleep(s.ended, d.upTo(3*s.plan.lease)) && !s.isCalm() && !p.isGone() {
		what := d.pick(10)
		if what < 3 && !s.plan.cuts {
			continue
		}
		switch what {
		case 0, 1:
			s.note("p%d is cut off", p.id)
			s.cutOff(p)
			sleep(s.ended, d.upTo(2*s.plan.lease))
			p.db.dead.Store(false)
			s.note("p%d is back", p.id)
		case 7:
			jump := int64(d.upTo(2 * s.plan.lease))
			s.note("p%d slept for %v", p.id, time.Duration(jump))
			p.clock.boot.Add(jump)
			p.clock.wall.Add(jump)
		case 3:
			jump := int64(d.upTo(time.Hour)) - int64(30*time.Minute)
			s.note("p%d's wall clock is set by %v", p.id, time.Duration(jump))
			p.clock.wall.Add(jump)
		case 4:
			s.w.events.setReady([]error{nil, nil, errNotYet}[d.pick(3)])
		case 2:
			if p.id > 1 && d.chance(0.3) {
				s.note("p%d crashes", p.id)
				s.cutOff(p)
				p.kill()
			}
		case 8: // the service's hosts do not agree on the time
			s.w.server.SetClockOffset(serverAhead + d.upTo(4*time.Second) - 2*time.Second)
		case 6:
			if p.id > 0 && d.chance(0.3) {
				s.note("p%d closes: %v", p.id, p.c.Close(s.ended))
			}
		}
	}
}

// cutOff takes a process's network away: nothing of it reaches the table any more. Whose
// contenders are killed as well has crashed.
func (s *schedule) cutOff(p *proc) {
	s.lapse()
	p.db.dead.Store(true)
}

func (s *schedule) lapse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lapsed = true
}

func (p *proc) isGone() bool { return p.life.Err() != nil }

func (p *proc) isCut() bool { return p.db.dead.Load() }
