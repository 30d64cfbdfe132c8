package streamwatcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/lockevent"
)

// How long after a write, or after the reader became live, a waiter may not know it
// yet. A throttled reader may wait for 5 s and is silent for three such intervals before
// that is a gap; where nothing fails a shard's change takes longest. A shard that no list
// showed is found by the next full list.
const (
	knowsWithin = 22 * time.Second
	calmWithin  = 5 * time.Second
	listsWithin = 95 * time.Second
)

const names = 16

// schedule is a random course of writes, changes of shards and faults from a seed. Its
// waiters follow the protocol of waiting without any fallback: they look at the table
// when the watcher tells them to and at no other time.
type schedule struct {
	*world
	rnd     *rand.Rand
	w       *Watcher
	line    timeline
	flaw    flaw
	rate    int           // calls of 100 that fail
	turn    int           // whose lock is written next
	last    int           // who pauses
	patient time.Duration // see knowsWithin
	waiters []*waiter
	all     sync.WaitGroup       // of the waiters
	late    map[string]time.Time // shards that are listed late, and their children: since when they are listed

	mu       sync.Mutex
	versions map[string]int
	live     time.Time // since when the reader is live; zero: it is not
	delay    time.Duration

	pending []write
	lost    string
}

// write is a version of a lock that its waiter must come to know.
type write struct {
	name    string
	version int
	shard   string
	at      time.Time
}

// outcome is what became of a schedule.
type outcome struct {
	lost   string // which wake-up, "" for none
	calls  int
	writes int
	stats  Stats
	line   string
}

// play runs one schedule in a bubble.
func play(t *testing.T, seed uint64, sdk bool, f flaw, logged bool) (out outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world, err := newWorld(t.Context(), seed)
		if err != nil {
			t.Fatal(err)
		}
		s := &schedule{world: world, rnd: world.dice("schedule"), flaw: f, patient: calmWithin, versions: make(map[string]int), late: make(map[string]time.Time)}
		s.line.on = logged
		ctx, cancel := context.WithCancel(t.Context())
		s.start(ctx, t, sdk)
		s.disturb(ctx)
		s.settle()
		cancel()
		s.all.Wait()
		out = outcome{lost: s.lost, calls: s.streamCalls(), stats: s.w.Stats(), line: s.line.String()}
		for _, n := range s.versions {
			out.writes += n
		}
		world.closeWith(t, s.w)
	})
	return out
}

// start chooses the kind of server and starts watcher and waiters.
func (s *schedule) start(ctx context.Context, t *testing.T, sdk bool) {
	t.Helper()
	s.SetStreamRules(func(r *fakedynamo.StreamRules) {
		r.NoTimestamps, r.LazyLatest, r.EndOnOpen = s.coin(2), s.coin(2), s.coin(4)
		r.Children = fakedynamo.ChildFilter(s.rnd.IntN(4))
		r.EmptyPages, r.Repeat = s.rnd.IntN(4), s.rnd.IntN(2)*s.rnd.IntN(3)
		r.Shuffled, r.Twice = s.coin(3), s.coin(3)
		if s.coin(3) {
			// A list of many pages takes as long as the rate of lists says.
			r.PageShards, s.patient = 1+s.rnd.IntN(3), knowsWithin
		}
		if s.coin(3) {
			r.PageRecords = 1 + s.rnd.IntN(3)
		}
		if s.coin(4) {
			r.ReadsPerSecond, r.ListsPerSecond, s.patient = 5, 10, knowsWithin
		}
		if s.coin(4) {
			s.delay = time.Duration(s.rnd.IntN(10)) * time.Second
			dice := s.dice("delay")
			r.Delay = func() time.Duration { return time.Duration(dice.Float64() * float64(s.delay)) }
		}
	})
	s.SetDateHeader(!s.coin(4))
	if !s.coin(3) {
		s.rate, s.patient = s.rnd.IntN(30), knowsWithin
	}
	s.line.add("%d %% of the calls fail", s.rate)
	s.setBreaks(faultsAt(s.rate))
	tables, streams := s.front(sdk)
	w, err := New(tables, s.flaw.streams(streams), "locks", func(o *Options) {
		o.IdleAfter = time.Second
		o.Observer = s.observer()
	})
	if err != nil {
		t.Fatal(err)
	}
	s.w, w.chanceFor = w, s.chanceFor
	s.flaw.spoil(w)
	for i := range names {
		s.waiters = append(s.waiters, s.follow(ctx, fmt.Sprintf("lock-%d", i)))
	}
}

func (s *schedule) coin(sides int) bool { return s.rnd.IntN(sides) == 0 }

func (s *schedule) observer() Observer {
	return Observer{
		Gap: func(c Cause) { s.line.add("gap: %s", c) },
		State: func(from, to State, err error) {
			s.line.add("%v to %v", from, to)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.live = time.Time{}
			if to == Live {
				s.live = time.Now()
			}
		},
		Wake: func(c lockevent.Change) { s.line.add("wake %s: %v %s", c.Name, c.Kind, c.RVN) },
		Request: func(op string, err error) {
			if err != nil {
				s.line.add("%s: %v", op, firstLine(err))
			}
		},
	}
}

func firstLine(err error) string {
	text := err.Error()
	return text[max(0, len(text)-60):]
}

// disturb writes, changes shards and breaks things for a while.
func (s *schedule) disturb(ctx context.Context) {
	for i := 0; i < 40 || s.streamCalls() < leastCalls && i < 400; i++ {
		time.Sleep(time.Duration(s.rnd.Int64N(int64(1600 * time.Millisecond))))
		s.check()
		if s.coin(2) {
			s.last = s.rnd.IntN(names)
			s.waiters[s.last].pause <- time.Duration(s.rnd.Int64N(int64(2 * time.Second)))
		}
		switch n := s.rnd.IntN(37); {
		case n < 24:
			s.write()
		case n < 32:
			s.rotate()
		case n == 32:
			// The service trims after a day, what a reader that is not in a gap has read long
			// before; here the least that such a reader may lag.
			s.line.add("trim")
			s.Trim(s.delay + knowsWithin + time.Duration(s.rnd.IntN(30))*time.Second)
		case n == 33:
			s.removeOldest()
		case n == 34:
			s.line.add("iterators expire")
			s.ExpireIterators()
		case n == 35:
			s.line.add("outage")
			s.patient = knowsWithin
			s.setBreaks(faultsAt(100))
			time.Sleep(time.Duration(s.rnd.Int64N(int64(20 * time.Second))))
			s.setBreaks(faultsAt(s.rate))
		case s.coin(3):
			s.line.add("new stream")
			if err := s.renewStream(ctx, time.Duration(s.rnd.Int64N(int64(3*time.Second)))); err != nil {
				s.lost = err.Error()
			}
		}
	}
}

func (s *schedule) write() {
	s.turn += 1 + s.rnd.IntN(2)
	name := s.waiters[s.turn%names].name // not often the same: a later event would hide a loss
	if s.coin(3) {
		name = s.waiters[s.last].name // which is about to watch again
	}
	s.mu.Lock()
	s.versions[name]++
	v := s.versions[name]
	s.mu.Unlock()
	shard := s.Of(keys(name))
	if !s.Append(shard, release(name, fmt.Sprint(v))) {
		s.lost = "the simulator has no shard for " + name
	}
	s.line.add("write %s %d to %s", name, v, shortShard(shard))
	s.pending = append(s.pending, write{name, v, shard, time.Now()})
}

func shortShard(id string) string { return id[max(0, len(id)-4):] }

// rotate closes a shard and gives it one or two children, which are listed at different
// times, and may have closed by then themselves.
func (s *schedule) rotate() {
	open := s.Open()
	parent := open[s.rnd.IntN(len(open))]
	n := 1
	if len(open) < 3 {
		n += s.rnd.IntN(2)
	}
	after := make([]time.Duration, n)
	for i := range after {
		if s.coin(3) {
			after[i] = time.Duration(s.rnd.Int64N(int64(6 * time.Second)))
		}
	}
	children := s.Rotate(parent, after...)
	for i, child := range children {
		if since, ok := s.late[parent]; ok || after[i] > 0 {
			s.late[child] = later(since, time.Now().Add(after[i]))
		}
		s.line.add("%s closes: %s is listed after %v", shortShard(parent), shortShard(child), after[i])
	}
	if s.coin(6) { // a child that closes at once
		s.late[children[0]] = later(s.late[children[0]], time.Now())
		grand := s.Rotate(children[0])
		s.late[grand[0]] = s.late[children[0]]
		s.line.add("%s closes: %s is listed at once", shortShard(children[0]), shortShard(grand[0]))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s *schedule) removeOldest() {
	if closed := s.Closed(); len(closed) > 0 {
		s.line.add("%s vanishes", shortShard(closed[0]))
		s.Remove(closed[0])
	}
}

// settle ends the faults and waits until everybody must know everything.
func (s *schedule) settle() {
	s.line.add("faults end")
	s.setBreaks(nil)
	for end := time.Now().Add(2 * listsWithin); len(s.pending) > 0 && s.lost == ""; {
		time.Sleep(time.Second)
		s.check()
		if time.Now().After(end) && len(s.pending) > 0 {
			s.lost = fmt.Sprintf("the waiter of %s does not know version %d of %v, long after the faults", s.pending[0].name, s.pending[0].version, s.pending[0].at)
		}
	}
}

// check looks whether a waiter does not know what it must know: a write from before the
// reader was last not live, or long enough ago.
func (s *schedule) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.pending = slices.DeleteFunc(s.pending, func(w write) bool {
		i := slices.IndexFunc(s.waiters, func(a *waiter) bool { return a.name == w.name })
		known, since := s.waiters[i].state()
		if known >= w.version {
			return true
		}
		if s.live.IsZero() || since.IsZero() {
			return false
		}
		due := later(later(w.at, s.live), since).Add(s.patient + s.delay)
		if listed, ok := s.late[w.shard]; ok {
			due = later(due, later(listed, s.live).Add(listsWithin+s.delay))
		}
		if now.After(due) && s.lost == "" {
			s.lost = fmt.Sprintf("%s: version %d was written at %s, the waiter knows %d at %s", w.name, w.version, s.line.clock(w.at), known, s.line.clock(now))
		}
		return false
	})
}

// timeline is what happened, to be printed when a schedule fails.
type timeline struct {
	on    bool
	mu    sync.Mutex
	lines []string
}

// epoch is when a bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (l *timeline) clock(at time.Time) string { return fmt.Sprintf("%.6f s", at.Sub(epoch).Seconds()) }

func (l *timeline) add(format string, args ...any) {
	if !l.on {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%12.6f ", time.Since(epoch).Seconds())+fmt.Sprintf(format, args...))
}

// String sorts what happened in one instant, whose order means nothing.
func (l *timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.lines)
	return strings.Join(l.lines, "\n")
}
