package streamwatcher

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/lockevent"
)

// sim is a watcher on the simulator inside a bubble.
type sim struct {
	*stand // without its fake
	*world
}

// simulated runs a test in virtual time, with rules for the simulator.
func simulated(t *testing.T, sdk bool, rules func(*fakedynamo.StreamRules), test func(t *testing.T, s *sim)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		world, err := newWorld(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if rules != nil {
			world.SetStreamRules(rules)
		}
		s := &sim{stand: &stand{t: t}, world: world}
		s.w = s.reader(sdk)
		defer world.closeWith(t, s.w)
		test(t, s)
	})
}

// reader is a watcher of the table.
func (s *sim) reader(sdk bool) *Watcher {
	s.t.Helper()
	tables, streams := s.front(sdk)
	w, err := New(tables, streams, "locks")
	if err != nil {
		s.t.Fatal(err)
	}
	w.chanceFor = s.chanceFor
	return w
}

// put records a release of name.
func (s *sim) put(name, rvn string) {
	s.t.Helper()
	if !s.Append("", release(name, rvn)) {
		s.t.Fatalf("no shard takes %s", name)
	}
}

// works checks that reading has come back: the next change of name is delivered as
// itself.
func (s *sim) works(wt lockevent.Watch, name string) {
	s.t.Helper()
	s.until(Live, time.Minute)
	time.Sleep(5 * time.Second)
	wt.Latest()
	s.put(name, "works")
	if c := s.change(wt, 2*throttleCap); c.RVN != "works" {
		s.t.Errorf("got %+v", c)
	}
}

// failing makes each call of an operation fail with a code.
func failing(op, code string) func(*rand.Rand, *fakedynamo.Request) fakedynamo.Fault {
	return always(op, fakedynamo.Fault{Error: &fakedynamo.APIError{Code: code, Message: "simulated"}})
}

func always(op string, f fakedynamo.Fault) func(*rand.Rand, *fakedynamo.Request) fakedynamo.Fault {
	return func(_ *rand.Rand, r *fakedynamo.Request) fakedynamo.Fault {
		if op != "" && r.Op != op {
			return fakedynamo.Fault{}
		}
		return f
	}
}

// once makes the next call of an operation fail with a code.
func once(op, code string) func(*rand.Rand, *fakedynamo.Request) fakedynamo.Fault {
	done := false
	f := failing(op, code)
	return func(roll *rand.Rand, r *fakedynamo.Request) fakedynamo.Fault {
		if done || r.Op != op {
			return fakedynamo.Fault{}
		}
		done = true
		return f(roll, r)
	}
}

// overCodes runs a test for each code.
func overCodes(t *testing.T, codes []string, test func(t *testing.T, code string)) {
	for _, code := range codes {
		t.Run(code, func(t *testing.T) { test(t, code) })
	}
}

// Cases: SF1, Q3
func TestThrottledReads(t *testing.T) {
	overCodes(t, throttleCodes, func(t *testing.T, code string) {
		simulated(t, false, nil, func(t *testing.T, s *sim) {
			a, b := s.live("a"), s.w.Watch("b")
			s.put("a", "r1")
			s.change(a, 2*interval)
			s.setBreaks(failing("GetRecords", code))
			s.put("a", "r2")
			s.put("b", "r3")
			calls := s.Requests().Count("GetRecords")
			time.Sleep(5 * time.Second)
			if n := s.Requests().Count("GetRecords") - calls; n > 10 {
				t.Errorf("%d calls in 5 s: the interval does not widen", n)
			}
			s.setBreaks(nil)
			if c := s.change(a, throttleCap+time.Second); c.RVN != "r2" {
				t.Errorf("got %+v", c)
			}
			s.change(b, time.Second)
			if st := s.w.Stats(); st.Records != 3 || st.Resyncs != 0 || st.State != Live {
				t.Errorf("stats %+v: no position may be lost", st)
			}
			s.setBreaks(failing("GetRecords", code))
			s.resync(a, time.Minute)
			s.setBreaks(nil)
			s.works(a, "a")
		})
	})
}

// A list that fails in the middle gives what it has, and the rest later.
//
// Cases: SF2
func TestPartialList(t *testing.T) {
	simulated(t, false, func(r *fakedynamo.StreamRules) { r.PageShards = 1 }, func(t *testing.T, s *sim) {
		parent := s.Open()[0]
		s.Rotate(parent, 0, 0)
		s.Remove(parent)
		throttle := failing("DescribeStream", "LimitExceededException")
		s.setBreaks(func(roll *rand.Rand, r *fakedynamo.Request) fakedynamo.Fault {
			if laterPage(r) {
				return throttle(roll, r)
			}
			return fakedynamo.Fault{}
		})
		wt := s.w.Watch("a")
		s.until(Live, 10*time.Second)
		if st := s.w.Stats(); st.Shards != 1 {
			t.Errorf("%d shards", st.Shards)
		}
		s.setBreaks(nil)
		time.Sleep(time.Minute)
		if st := s.w.Stats(); st.Shards != 2 {
			t.Errorf("%d shards", st.Shards)
		}
		s.works(wt, "a")
	})
	for _, code := range throttleCodes {
		simulated(t, false, nil, func(t *testing.T, s *sim) {
			wt := s.live("a")
			s.setBreaks(failing("GetShardIterator", code))
			s.ExpireIterators()
			s.resync(wt, 2*time.Second)
			time.Sleep(10 * time.Second)
			if n := s.Requests().Count("GetShardIterator"); n > 20 {
				t.Errorf("%d iterators in 10 s", n)
			}
			s.setBreaks(nil)
			s.works(wt, "a")
		})
	}
}

// Cases: SF4, S20
func TestTrimmedAnywhere(t *testing.T) {
	for name, test := range map[string]struct {
		rules  func(*fakedynamo.StreamRules)
		before string // the call that fails before the reader is live
		op     string // the one that fails then
	}{
		"on a read":           {op: "GetRecords"},
		"on the iterator":     {op: "GetShardIterator"},
		"right after LATEST":  {rules: func(r *fakedynamo.StreamRules) { r.NoTimestamps = true }, before: "GetRecords"},
		"on the first of all": {before: "GetShardIterator"},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, false, test.rules, func(t *testing.T, s *sim) {
				if test.before != "" {
					s.setBreaks(once(test.before, "TrimmedDataAccessException"))
				}
				wt := s.live("a")
				if test.op != "" {
					s.setBreaks(once(test.op, "TrimmedDataAccessException"))
					s.ExpireIterators()
					s.put("a", "r1")
					s.resync(wt, 2*time.Second)
				}
				s.works(wt, "a")
			})
		})
	}
}

// Cases: SF5, S20
func TestNotFoundAnywhere(t *testing.T) {
	for _, op := range []string{"GetRecords", "GetShardIterator", "DescribeStream"} {
		t.Run(op, func(t *testing.T) {
			simulated(t, true, nil, func(t *testing.T, s *sim) {
				wt := s.live("a")
				s.setBreaks(once(op, "ResourceNotFoundException"))
				s.ExpireIterators()
				s.Rotate(s.Open()[0])
				s.put("a", "r1")
				s.told(wt, "r1", 10*time.Second)
				s.works(wt, "a")
			})
		})
	}
	t.Run("the stream", func(t *testing.T) {
		simulated(t, true, nil, func(t *testing.T, s *sim) {
			wt := s.live("a")
			if err := s.renewStream(t.Context(), time.Millisecond); err != nil {
				t.Fatal(err)
			}
			s.put("a", "r1")
			s.told(wt, "r1", 10*time.Second)
			s.works(wt, "a")
		})
	})
}

// Cases: SF7
func TestOneToTenEmptyPages(t *testing.T) {
	for n := 1; n <= 10; n++ {
		simulated(t, false, func(r *fakedynamo.StreamRules) { r.EmptyPages = n }, func(t *testing.T, s *sim) {
			wt := s.live("a")
			time.Sleep(time.Duration(n+1) * interval)
			s.Rotate(s.Open()[0])
			s.put("a", "r1")
			if c := s.change(wt, 4*interval); c.RVN != "r1" {
				t.Errorf("%d pages: got %+v", n, c)
			}
		})
	}
}

// Cases: SF8, R4
func TestOddFamilies(t *testing.T) {
	for kind := fakedynamo.ChildrenListed; kind <= fakedynamo.ChildrenRefused; kind++ {
		rules := func(r *fakedynamo.StreamRules) { r.Children, r.EndOnOpen = kind, kind%2 == 0 }
		for name, test := range map[string]struct {
			grow   func(s *sim)
			within time.Duration
		}{
			"child closed already": {func(s *sim) { s.Rotate(s.Rotate(s.Open()[0])[0]) }, 2 * time.Second},
			"grandchild first":     {func(s *sim) { s.Rotate(s.Rotate(s.Open()[0], 3*time.Second)[0]) }, 10 * time.Second},
			"children 60 s apart":  {func(s *sim) { s.Rotate(s.Open()[0], 0, time.Minute) }, 2*time.Minute + 20*time.Second},
			"parent vanishes": {func(s *sim) {
				parent := s.Open()[0]
				s.Rotate(parent)
				s.Remove(parent)
			}, 10 * time.Second},
		} {
			t.Run(fmt.Sprintf("%s, filter %d", name, kind), func(t *testing.T) {
				simulated(t, false, rules, func(t *testing.T, s *sim) {
					names := []string{"a", "b", "c", "d", "e", "f"} // over all shards
					var watches []lockevent.Watch
					for _, n := range names {
						watches = append(watches, s.w.Watch(n))
					}
					s.until(Live, time.Second)
					time.Sleep(time.Second)
					for _, wt := range watches {
						wt.Latest()
					}
					test.grow(s)
					for _, n := range names {
						s.put(n, "r1")
					}
					began := time.Now()
					for _, wt := range watches {
						s.told(wt, "r1", test.within-time.Since(began))
					}
					for i, wt := range watches {
						s.works(wt, names[i])
					}
				})
			})
		}
	}
}

// Cases: SF10
func TestLatestOnAClosedShard(t *testing.T) {
	simulated(t, false, func(r *fakedynamo.StreamRules) { r.NoTimestamps = true }, func(t *testing.T, s *sim) {
		s.Rotate(s.Open()[0], 10*time.Second)
		wt := s.w.Watch("a")
		s.put("a", "r1") // to the child that no list shows
		s.until(Gap, 3*time.Second)
		s.resync(wt, time.Second)
		time.Sleep(time.Minute)
		s.works(wt, "a")
	})
}

// Cases: SF11
func TestServerClockMoves(t *testing.T) {
	for _, by := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
		t.Run(by.String(), func(t *testing.T) {
			simulated(t, true, nil, func(t *testing.T, s *sim) {
				wt := s.live("a")
				s.SetClockOffset(30*365*24*time.Hour + by)
				s.ExpireIterators()
				s.put("a", "r1")
				s.told(wt, "r1", 2*time.Second)
				s.works(wt, "a")
				s.Rotate(s.Open()[0])
				s.works(wt, "a")
			})
		})
	}
}
