package lockclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// season is some electors under random cuts, step-downs and work that is slow to end.
type season struct {
	w     *world
	dice  *rand.Rand
	all   []*Elector
	heard []heardOf

	mu    sync.Mutex
	terms int
	top   int64 // the largest token that led
	fault string
}

func (s *season) breaks(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == "" {
		s.fault = fmt.Sprintf(format, args...)
	}
}

func (s *season) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dice.IntN(n)
}

// onlyOneLeads is mutual exclusion, in whatever process.
func (s *season) onlyOneLeads() (leads int) {
	n := 0
	for i, e := range s.all {
		if e.IsLeader() {
			n++
			leads = i
		}
	}
	if n > 1 {
		s.breaks("%d lead", n)
	}
	return leads
}

func (s *season) work(running *atomic.Int64) func(context.Context) error {
	return func(ctx context.Context) error {
		if running.Add(1) != 1 {
			s.breaks("one elector's work runs twice")
		}
		defer running.Add(-1)
		l, _ := LeaseFromContext(ctx)
		s.mu.Lock()
		s.terms++
		if l.token <= s.top {
			s.fault = fmt.Sprintf("token %d after %d", l.token, s.top)
		}
		s.top = l.token
		s.mu.Unlock()
		s.onlyOneLeads()
		if s.roll(4) == 0 {
			sleep(ctx, time.Duration(s.roll(30))*time.Second) // returns by itself
			return nil
		}
		<-ctx.Done()
		time.Sleep(time.Duration(s.roll(15)) * time.Second) // slow to end, at times longer than its grace
		if it := s.w.item("leader"); it.Released && it.Token == l.token {
			s.breaks("released while the work with token %d runs", l.token)
		}
		return nil
	}
}

// disturb plays until ctx ends.
func (s *season) disturb(ctx context.Context) {
	for sleep(ctx, time.Duration(s.roll(20_000))*time.Millisecond) {
		e := s.all[s.roll(len(s.all))]
		switch s.roll(3) {
		case 0: // a network that is cut for a while
			e.c.db.(*telling).dead.Store(true)
			sleep(ctx, time.Duration(s.roll(25))*time.Second)
			e.c.db.(*telling).dead.Store(false)
		default:
			short, cancel := context.WithTimeout(ctx, time.Duration(s.roll(30))*time.Second)
			_ = e.StepDown(short)
			cancel()
		}
	}
}

func TestElectorsUnderRandomFaults(t *testing.T) {
	t.Parallel()
	terms := 0
	for seed := range uint64(8) {
		bubble(t, func(w *world) {
			s := &season{w: w, dice: rand.New(rand.NewPCG(seed, 7))}
			opt := w.watching
			if seed%3 == 0 {
				opt = func(*Options) {}
			}
			for range 3 {
				s.all = append(s.all, w.elector(w.client(opt), func(o *ElectorOptions) { o.Grace = 12 * time.Second }))
			}
			s.heard = make([]heardOf, len(s.all))
			ctx, cancel := context.WithCancel(w.ctx)
			faults, calm := context.WithCancel(ctx)
			var running sync.WaitGroup
			for i, e := range s.all {
				work := s.work(new(atomic.Int64))
				running.Go(func() { _ = e.Run(ctx, work) })
				running.Go(func() { s.heard[i].from(ctx, e) })
			}
			running.Go(func() { s.disturb(faults) })
			running.Go(func() {
				for sleep(ctx, 100*time.Millisecond) {
					s.onlyOneLeads()
				}
			})
			time.Sleep(10 * time.Minute)
			calm()
			time.Sleep(3 * time.Minute)
			// Work that returns by itself still moves leadership: look when somebody leads.
			leads := s.onlyOneLeads()
			for n := 0; !s.all[leads].IsLeader() && n < 60; n++ {
				time.Sleep(time.Second)
				leads = s.onlyOneLeads()
			}
			time.Sleep(2 * time.Second)
			if now := s.all[leads].current(); now == nil {
				s.breaks("nobody leads at the end")
			} else {
				for i := range s.heard {
					if got := s.heard[i].last(); got.Token != now.lease.token {
						s.breaks("loop %d believes that %d leads, and it is %d; errors %v", i, got.Token, now.lease.token, s.heard[i].errs)
					}
				}
			}
			cancel()
			running.Wait()
			time.Sleep(15 * time.Second) // work that was given up
			terms += s.terms
			if s.fault != "" {
				t.Errorf("seed %d: %s (%d terms)", seed, s.fault, s.terms)
			}
		})
	}
	if terms < 60 {
		t.Errorf("%d terms: the runs show nothing", terms)
	}
}
