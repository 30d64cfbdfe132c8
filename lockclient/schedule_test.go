package lockclient

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// schedule is one random run in virtual time: clients with contenders for a few names, a
// table and a network that fail in every way, clocks that jump and a notifier that is no
// better than its contract (or, where it lies, worse).
//
// The seed fixes the schedule and the faults. The clients' own jitter and versions are
// not seeded, so a replay repeats the circumstances and not each instant.
type schedule struct {
	w    *world
	seed uint64
	d    *dice
	twin twin
	plan plan

	procs  []*proc
	lapsed bool          // some lock may stay held for nobody: its holder was cut off or lost it
	calm   chan struct{} // closed when the faults are over
	ended  context.Context
	end    context.CancelFunc

	mu     sync.Mutex
	began  time.Time
	lines  []string
	live   map[string][]*Lease
	top    map[string]int64
	broken string
	held   int
}

// plan is what the seed decides for a whole run.
type plan struct {
	lease    time.Duration
	names    int
	faults   float64       // share of requests that meet one
	lost     float64       // share of writes that are applied and whose answer comes late or never
	late     time.Duration // how much later a request may be applied
	notifier string        // "none", "honest", "lying", "mixed"
	unrest   time.Duration // how long the faults go on
	cuts     bool          // processes are cut off and crash
	cutAfter float64       // chance that a process is cut off right after an acquire
	fallback time.Duration
}

// proc is one process: a client with its clock and its network.
type proc struct {
	id     int
	c      *Client
	db     *telling
	clock  *skewedClock
	writes *edited

	life context.Context // of its contenders, ends with a crash
	kill context.CancelFunc
}

func newPlan(d *dice) plan {
	p := plan{
		lease: time.Duration(2+d.pick(9)) * time.Second, names: 1 + d.pick(2), faults: []float64{0, 0.05, 0.15, 0.3}[d.pick(4)],
		lost:     []float64{0, 0, 0.1}[d.pick(3)],
		notifier: []string{"none", "honest", "honest", "mixed", "lying"}[d.pick(5)], unrest: time.Duration(40+d.pick(80)) * time.Second,
		cuts: d.chance(0.6), fallback: time.Hour,
	}
	if p.cuts {
		p.cutAfter = []float64{0, 0.1, 0.3}[d.pick(3)]
	}
	p.late = p.lease
	if d.chance(0.3) {
		p.late = 10 * time.Minute
	}
	if p.notifier == "lying" {
		p.fallback = 20 * time.Second
	}
	return p
}

// play runs one schedule and returns what it broke, "" for nothing, with its timeline.
func play(t *testing.T, seed uint64, tw twin) (broken, timeline string, held int) {
	t.Helper()
	bubble(t, func(w *world) {
		s := &schedule{
			w: w, seed: seed, d: newDice(seed, 0), twin: tw, calm: make(chan struct{}), began: time.Now(),
			live: map[string][]*Lease{}, top: map[string]int64{},
		}
		s.plan = newPlan(s.d)
		if tw.plan != nil {
			tw.plan(&s.plan)
		}
		s.ended, s.end = context.WithCancel(w.ctx)
		s.run()
		broken, timeline, held = s.broken, s.timeline(), s.held
	})
	return broken, timeline, held
}

func (s *schedule) run() {
	var background, contenders sync.WaitGroup
	defer background.Wait()
	defer s.end()
	if _, err := s.w.client().EnsureTable(s.ended, func(o *EnsureOptions) { o.Repair = true }); err != nil {
		s.w.t.Fatal(err)
	}
	faults := newDice(s.seed, 1)
	s.w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
		switch {
		case s.isCalm() || r.Op != "UpdateItem" && r.Op != "GetItem":
			return fakedynamo.Fault{}
		case r.Op == "UpdateItem" && faults.chance(s.plan.lost):
			if faults.chance(0.5) {
				return fakedynamo.Fault{DelayResponse: faults.upTo(s.plan.lease / 4)}
			}
			return fakedynamo.Fault{DropResponse: true}
		case !faults.chance(s.plan.faults):
			return fakedynamo.Fault{}
		}
		return faults.anyFault(s.plan.lease, s.plan.late)
	})
	news := &streamed{w: s.w, d: newDice(s.seed, 2), lies: s.plan.notifier == "lying", delay: s.d.upTo(time.Second)}
	s.w.events.mute.Store(true) // told by the stream instead
	background.Go(func() { news.run(s.ended) })
	background.Go(s.watchValidity)
	for i := range 2 + s.d.pick(3) {
		s.startProcess(i)
	}
	n := uint64(10)
	for _, p := range s.procs {
		for range 1 + s.d.pick(3) {
			d := newDice(s.seed, n)
			contenders.Go(func() { s.contend(p, d) })
			n++
		}
		d := newDice(s.seed, 100+n)
		background.Go(func() { s.disturb(p, d) })
	}
	sleep(s.ended, s.plan.unrest)
	s.settle(&contenders)
}

// startProcess makes a client by the real SDK or, as most are, by the narrow front.
func (s *schedule) startProcess(i int) {
	p := &proc{id: i, clock: &skewedClock{}, db: &telling{DynamoDBAPI: s.w.server.API(), events: s.w.events}}
	p.life, p.kill = context.WithCancel(s.ended)
	if s.d.chance(0.3) {
		p.db.DynamoDBAPI = s.w.server.Client()
	}
	p.writes = &edited{DynamoDBAPI: p.db, p: p, edit: s.twin.edit, sent: map[string]reading{}, settled: map[string]bool{}}
	watches := s.plan.notifier == "honest" || s.plan.notifier == "lying" || s.plan.notifier == "mixed" && i%2 == 0
	c, err := New(p.writes, testTable, func(o *Options) {
		o.LeaseDuration, o.clock, o.Label = s.plan.lease, p.clock, fmt.Sprint("p", i)
		if watches {
			o.Notifier, o.Fallback = s.w.events, s.plan.fallback
		}
		o.Observer.Renewed = func(name string, _ int64) {
			if l := s.leaseOf(p, name); l != nil && s.twin.renewed != nil {
				s.twin.renewed(p, l)
			}
			s.checkValid(name)
		}
		o.Observer.Recovered = func(op, name string) {
			s.note("p%d recovered %s of %s", i, op, name)
			p.writes.recovered(name)
		}
		o.Observer.Lost = func(e *LostError) {
			s.note("p%d lost %s/%d: %s", i, e.Name, e.Token, e.Reason)
			if e.Reason != Closed {
				s.lapse() // a lost lease is not released: its lock runs out
			}
		}
		o.Observer.Request = func(e RequestEvent) {
			s.note("p%d %s %s: %s after %v", i, e.Op, e.Name, e.Outcome, e.Took)
		}
	})
	if err != nil {
		s.w.t.Fatal(err)
	}
	p.c = c
	s.procs = append(s.procs, p)
	s.w.mu.Lock()
	s.w.open = append(s.w.open, c)
	s.w.mu.Unlock()
}

// settle ends the faults and checks what must be true afterwards.
func (s *schedule) settle(contenders *sync.WaitGroup) {
	close(s.calm)
	s.note("the faults are over")
	s.w.events.setReady(nil)
	for _, p := range s.procs {
		if !p.isGone() {
			p.db.dead.Store(false)
		}
	}
	bound := 3*(2*s.plan.lease) + 30*time.Second
	if s.plan.late > s.plan.lease {
		bound += s.plan.late + 6*s.plan.lease
	}
	if s.plan.notifier == "lying" {
		bound += 2 * time.Minute
	}
	done := make(chan struct{})
	go func() { contenders.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(bound):
		s.breaks("somebody still waits %v after the faults", bound)
	case <-s.ended.Done():
	}
	s.end()
	<-done
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, p := range s.procs {
		_ = p.c.Close(ctx) // of a crashed one it fails
	}
	s.checkTable()
	if s.broken == "" {
		s.checkAftermath()
	}
}

// checkAftermath looks at the table when everything that comes late has come.
func (s *schedule) checkAftermath() {
	time.Sleep(20 * time.Minute)
	c := s.w.client(func(o *Options) { o.LeaseDuration = s.plan.lease })
	for i := range s.plan.names {
		name := fmt.Sprint("lock-", i)
		it := s.w.item(name)
		orphan := it != nil && !it.Released
		excused := s.lapsed || s.plan.late > s.plan.lease || s.plan.faults > 0.2
		if orphan && !excused {
			s.breaks("%s is held by nobody: %+v", name, it)
		}
		began := time.Now()
		l, err := c.Acquire(s.w.ctx, name)
		if err != nil {
			s.breaks("%s cannot be acquired: %v", name, err)
			return
		}
		if took := time.Since(began); took > time.Second && (!orphan || took > 2*s.plan.lease*21/20+2*time.Second) {
			s.breaks("a fresh client got %s after %v", name, took)
		}
		s.got(nil, l)
		_ = l.Release(s.w.ctx)
	}
	// Hours later the service deletes what is out of use: tokens rise all the same.
	time.Sleep(3 * time.Hour)
	if n, err := s.w.server.ExpireTTL(testTable); err != nil || n != s.plan.names {
		s.breaks("the TTL deleted %d items of %d: %v", n, s.plan.names, err)
	}
	for i := range s.plan.names {
		l, err := c.TryAcquire(s.w.ctx, fmt.Sprint("lock-", i))
		if err != nil {
			s.breaks("after the deletion: %v", err)
			return
		}
		s.got(nil, l)
		_ = l.Release(s.w.ctx)
	}
	s.checkTable()
}
