package streamwatcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/lockstream/lockstream/lockevent"
)

// seeds is how many schedules every run of the tests takes.
const seeds = uint64(60)

// schedule is a random course of writes, rotations and faults from a seed.
type schedule struct {
	*stand
	rnd     *rand.Rand
	version atomic.Int64 // what the table holds
	shard   string       // where the lock's writes go
	serial  int
	line    timeline
}

// timeline is what happened, to be printed when a schedule fails.
type timeline struct {
	mu    sync.Mutex
	start time.Time
	text  strings.Builder
}

func (l *timeline) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.start.IsZero() {
		l.start = time.Now()
	}
	fmt.Fprintf(&l.text, "%9.3f ", time.Since(l.start).Seconds())
	fmt.Fprintf(&l.text, format+"\n", args...)
}

func (l *timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *timeline) observer() Observer {
	return Observer{
		Gap:   func(c Cause) { l.add("gap: %s", c) },
		State: func(from, to State, _ error) { l.add("%v to %v", from, to) },
		Wake:  func(c lockevent.Change) { l.add("wake: %v %s", c.Kind, c.RVN) },
	}
}

// TestNoLostWakeUp lets one waiter follow a lock by the protocol of waiting, without any
// fallback: it looks at the table only when the watcher tells it to. Once the faults are
// over it must know the last version, whatever happened before.
//
// Cases: R2, R3, R4, R8, Q1, Q2, Q3
func TestNoLostWakeUp(t *testing.T) {
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			s := &schedule{stand: &stand{t: t, fake: one()}, rnd: rand.New(rand.NewPCG(seed, 7)), shard: "A"}
			s.noTimestamp = s.rnd.IntN(2) == 0
			s.ignoreFilter = s.rnd.IntN(2) == 0
			s.lazyLatest = s.rnd.IntN(2) == 0
			s.emptyPages = s.rnd.IntN(4)
			s.w = s.watcher(func(o *Options) {
				o.PollInterval = 100 * time.Millisecond
				o.IdleAfter = time.Second
				o.Observer = s.line.observer()
			})
			if s.rnd.IntN(2) == 0 { // no answer has a Date
				s.w.api.dated = func(middleware.Metadata) (time.Time, bool) { return time.Time{}, false }
			}
			known := s.follow()
			s.disturb()
			s.edit(func() { s.fault = nil })
			time.Sleep(3 * time.Minute)
			if got, want := known.Load(), s.version.Load(); got != want {
				t.Fatalf("seed %d: the waiter knows version %d of %d\n%s%+v", seed, got, want, s.line.String(), s.w.Stats())
			}
		})
	}
}

// follow starts the waiter and returns the version that it knows.
func (s *schedule) follow() *atomic.Int64 {
	var known atomic.Int64
	look := func() {
		time.Sleep(s.latency)
		s.line.add("look at %d", s.version.Load())
		known.Store(max(known.Load(), s.version.Load()))
	}
	ctx := s.t.Context()
	go func() {
		wt := s.w.Watch("a")
		defer wt.Stop()
		s.await(wt)
		wt.Latest()
		look()
		for {
			select {
			case <-wt.C():
			case <-ctx.Done():
				return
			}
			c, ok := wt.Latest()
			switch {
			case !ok:
			case c.Kind == lockevent.Resync:
				s.await(wt)
				look()
			default:
				v, _ := strconv.ParseInt(c.RVN, 10, 64)
				known.Store(max(known.Load(), v))
			}
		}
	}()
	return &known
}

func (s *schedule) await(wt lockevent.Watch) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 250*time.Millisecond)
	defer cancel()
	_ = s.w.Ready(ctx, wt) // whatever it says, the waiter looks
}

// disturb writes, rotates and breaks things for a while.
func (s *schedule) disturb() {
	rate := s.rnd.IntN(40) // of 100 calls
	codes := []string{
		"ThrottlingException", "InternalServerError", "ExpiredIteratorException", "LimitExceededException",
		"TrimmedDataAccessException", "ResourceNotFoundException", "hang",
	}
	dice := rand.New(rand.NewPCG(s.rnd.Uint64(), 8))
	s.edit(func() {
		s.fault = func(fakeCall) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if dice.IntN(100) >= rate {
				return nil
			}
			if code := codes[dice.IntN(len(codes))]; code != "hang" {
				return apiError(code)
			}
			return errHang
		}
	})
	for range 60 {
		time.Sleep(time.Duration(s.rnd.IntN(1000)) * time.Millisecond)
		switch n := s.rnd.IntN(20); {
		case n < 14:
			v := s.version.Add(1)
			s.line.add("write %d to %s", v, s.shard)
			s.write(s.shard, release("a", fmt.Sprint(v)))
		case n < 17:
			s.split()
		case n == 17:
			s.edit(func() { s.trim(30 * time.Second) })
		case n == 18:
			s.edit(func() {
				for _, old := range s.shards { // the oldest goes first
					if !old.gone {
						old.gone, old.removed = old.closed, old.closed
						s.line.add("%s gone: %v", old.id, old.gone)
						break
					}
				}
			})
		default: // an outage
			old := rate
			s.line.add("outage")
			s.edit(func() { rate = 100 })
			time.Sleep(time.Duration(s.rnd.IntN(90)) * time.Second)
			s.edit(func() { rate = old })
		}
	}
}

func (s *schedule) split() {
	children := map[string]time.Duration{}
	parent := s.shard
	for range 1 + s.rnd.IntN(2) {
		s.serial++
		s.shard = fmt.Sprintf("%s%d", "S", s.serial)
		children[s.shard] = time.Duration(s.rnd.IntN(3)*s.rnd.IntN(3)) * time.Second
	}
	s.line.add("%s closes, children listed after %v", parent, children)
	s.rotate(parent, children)
}
