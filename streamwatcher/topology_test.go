package streamwatcher

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

// shardsOf reads "id<parent id id<parent".
func shardsOf(list string) (out []types.Shard) {
	for _, word := range strings.Fields(list) {
		id, parent, has := strings.Cut(word, "<")
		s := types.Shard{ShardId: &id}
		if has {
			s.ParentShardId = &parent
		}
		out = append(out, s)
	}
	return out
}

func ids(shards []*shard) string {
	var names []string
	for _, s := range shards {
		names = append(names, s.id)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Cases: S25, S26
func TestLeaves(t *testing.T) {
	for list, want := range map[string]string{
		"A":                   "A",
		"A B<A":               "B",
		"B<A A":               "B",
		"A B<A B<A A":         "B", // listed twice
		"C<B":                 "C", // its parent is not listed
		"A B<A C<A D<B":       "C D",
		"A<A":                 "A", // its own parent
		"A<B B<A":             "A B",
		"C<B A B<A X Y<X Z<X": "C Y Z",
	} {
		top := newTopology()
		top.begin(shardsOf(list))
		if got := ids(top.startable()); got != want {
			t.Errorf("%s: got %q, want %q", list, got, want)
		}
	}
}

func TestLaterShards(t *testing.T) {
	type step struct{ list, finish, late, start string }
	for name, steps := range map[string][]step{
		"child of one that is read":  {{list: "B<A", start: ""}, {finish: "A", start: "B"}},
		"child of a drained one":     {{finish: "A"}, {list: "B<A C<A", start: "B C"}},
		"grandchild first":           {{finish: "A"}, {list: "C<B", late: "C", start: "C"}, {list: "B<A C<B", start: "B"}},
		"child closed already":       {{finish: "A"}, {list: "A B<A C<B D<C", start: "B"}, {finish: "B", start: "C"}, {finish: "C", start: "D"}},
		"a stranger":                 {{list: "A X", late: "X", start: "X"}},
		"ancestors of what is read":  {{list: "A<P P<G G"}},
		"a circle of new ones":       {{list: "X<Y Y<X", start: "X Y"}},
		"the same answer once more":  {{list: "A A A"}},
		"second child after a while": {{finish: "A"}, {list: "B<A", start: "B"}, {finish: "A done"}, {list: "C<A", late: "C", start: "C"}},
	} {
		t.Run(name, func(t *testing.T) {
			top := newTopology()
			top.begin(shardsOf("A"))
			read(top)
			for i, step := range steps {
				if id, done := strings.CutSuffix(step.finish, " done"); done {
					top.shards[id].phase = phaseDone
				} else if step.finish != "" {
					top.shards[step.finish].phase = phaseDrained
				}
				var late []*shard
				for _, s := range top.merge(shardsOf(step.list)) {
					if s.late {
						late = append(late, s)
					}
				}
				if got := ids(late); got != step.late {
					t.Errorf("step %d: late %q, want %q", i, got, step.late)
				}
				if got := read(top); got != step.start {
					t.Errorf("step %d: started %q, want %q", i, got, step.start)
				}
			}
		})
	}
}

func read(top *topology) string {
	ready := top.startable()
	for _, s := range ready {
		s.phase = phaseReading
	}
	return ids(ready)
}

// A finished shard is forgotten when lists lack it again and again, not at once.
func TestForget(t *testing.T) {
	top := newTopology()
	top.begin(shardsOf("A B<A"))
	for i := range missingLists {
		if top.shards["A"] == nil {
			t.Fatalf("forgotten after %d lists", i)
		}
		top.forget(map[string]bool{"B": true})
	}
	if top.shards["A"] != nil || top.shards["B"] == nil {
		t.Errorf("left: %v", top.shards)
	}
}

// Whatever the order of lists and ends, every shard of a random tree is read once, and
// never before its parent was read to the end.
//
// Cases: S4
func TestRandomTrees(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		names, all := []string{"A"}, "A"
		parents := map[string]string{}
		for i := range 20 {
			id, parent := string(rune('B'+i)), names[rnd.IntN(len(names))]
			names, parents[id] = append(names, id), parent
			all += " " + id + "<" + parent
		}
		top := newTopology()
		top.begin(shardsOf("A"))
		started := map[string]int{}
		for range 2000 {
			var part []types.Shard
			for _, s := range shardsOf(all) {
				// A shard is shown after its parent; shuffled, partly, repeated.
				p := parents[*s.ShardId]
				if rnd.IntN(3) == 0 && (p == "" || top.shards[p] != nil) {
					part = append(part, s)
				}
			}
			top.merge(part)
			for _, s := range top.startable() {
				if p := top.shards[s.parent]; p != nil && p.phase < phaseDrained {
					t.Fatalf("seed %d: %s started before %s ended", seed, s.id, p.id)
				}
				s.phase = phaseReading
				started[s.id]++
			}
			for _, s := range top.shards {
				if s.phase == phaseReading && rnd.IntN(2) == 0 {
					s.phase = phaseDrained
				} else if s.phase == phaseDrained && top.hasChild(s.id) {
					s.phase = phaseDone
				}
			}
			if len(started) == len(names) {
				break
			}
		}
		for _, id := range names {
			if started[id] != 1 {
				t.Fatalf("seed %d: %s started %d times", seed, id, started[id])
			}
		}
	}
}

func TestMailbox(t *testing.T) {
	h := &hub{names: make(map[string][]*watch)}
	h.level.changed = make(chan struct{})
	w := &watch{hub: h, name: "a", c: make(chan struct{}, 1)}
	h.add(w)
	put := func(rvn, seq string) { h.deliver(lockevent.Change{Name: "a", RVN: rvn, Sequence: seq}) }
	latest := func() string {
		select {
		case <-w.C():
		default:
			t.Fatal("no signal")
		}
		c, ok := w.Latest()
		if !ok {
			t.Fatal("nothing in the mailbox")
		}
		if _, again := w.Latest(); again {
			t.Fatal("not drained")
		}
		return c.Kind.String() + " " + c.RVN
	}
	if _, ok := w.Latest(); ok {
		t.Error("a new mailbox is not empty")
	}
	put("r1", "9")
	put("r2", "10") // later, although smaller as text
	if got := latest(); got != "unknown r2" {
		t.Errorf("got %q", got)
	}
	put("r4", "12")
	put("r3", "11") // late: wakes, but does not replace
	if got := latest(); got != "unknown r4" {
		t.Errorf("got %q", got)
	}
	put("r3", "11") // older than what was taken: still wakes
	if got := latest(); got != "unknown r3" {
		t.Errorf("got %q", got)
	}
	put("r5", "13")
	w.putResync()
	put("r6", "14")
	if got := latest(); got != "resync " {
		t.Errorf("got %q", got)
	}
	w.Stop()
	put("r7", "15")
	if _, ok := w.Latest(); ok || len(h.names) != 0 || h.watches != 0 {
		t.Error("a stopped watch is still served")
	}
}

func TestOlder(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"9", "10", true},
		{"10", "9", false},
		{"10", "10", false},
		{"", "1", false},
		{"1", "", false},
		{"99999999999999999999999999999999999999", "100000000000000000000000000000000000000", true},
	} {
		if got := older(test.a, test.b); got != test.want {
			t.Errorf("older(%q, %q) = %v", test.a, test.b, got)
		}
	}
}

func TestPace(t *testing.T) {
	p := pace{base: 250 * time.Millisecond, chance: rand.Float64}
	near := func(quiet, want time.Duration) {
		t.Helper()
		for range 100 {
			if d := p.next(quiet); d < want*9/10 || d > want*11/10 {
				t.Fatalf("after %v of quiet: %v, want about %v", quiet, d, want)
			}
		}
	}
	near(0, 250*time.Millisecond)
	near(31*time.Second, 500*time.Millisecond)
	near(time.Hour, time.Second)
	for range 20 {
		p.throttled()
	}
	if p.extra != throttleCap {
		t.Errorf("widened by %v, want %v", p.extra, throttleCap)
	}
	polls := 0
	for ; p.extra > 0; polls++ {
		p.polled()
	}
	if polls < 100 || polls > 1000 {
		t.Errorf("narrow again after %d polls", polls)
	}
	near(0, 250*time.Millisecond)
	p = pace{base: 2 * time.Second, chance: rand.Float64} // slower than the slide's limit: stays as it is
	near(time.Hour, 2*time.Second)
}

func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bucket
		calls := 0
		for start := time.Now(); time.Since(start) < time.Minute; calls++ {
			wait := b.wait(time.Now())
			if calls > 0 && wait < listSpacing {
				t.Fatalf("call %d after %v", calls, wait)
			}
			time.Sleep(wait)
			b.take(time.Now())
		}
		if most := listBurst + 120 + 1; calls > most || calls < most-5 {
			t.Errorf("%d calls in a minute", calls)
		}
	})
}

func TestServerClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c serverClock
		if _, ok := c.now(); ok {
			t.Error("a time without an answer")
		}
		c.observe(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), time.Now())
		if _, ok := c.now(); ok {
			t.Error("believed a time before 2024")
		}
		base := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
		c.observe(base, time.Now())
		time.Sleep(5 * time.Second)
		c.observe(base.Add(4*time.Second), time.Now()) // cut to seconds: the older estimate is better
		if now, ok := c.now(); !ok || !now.Equal(base.Add(5*time.Second)) {
			t.Errorf("now %v", now)
		}
		c.observe(base.Add(6*time.Second), time.Now())
		if now, _ := c.now(); !now.Equal(base.Add(6 * time.Second)) {
			t.Errorf("now %v", now)
		}
	})
}
