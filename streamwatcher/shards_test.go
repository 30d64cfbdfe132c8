package streamwatcher

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

// Cases: S1, S2, S13, Q1, SF6
func TestClosingShard(t *testing.T) {
	for _, listed := range []time.Duration{0, 300 * time.Millisecond, 1500 * time.Millisecond} {
		t.Run(listed.String(), func(t *testing.T) {
			bubble(t, one, func(t *testing.T, s *stand) {
				a, b, c := s.live("a"), s.w.Watch("b"), s.w.Watch("c")
				s.write("A", release("a", "last page"))
				rotated := time.Now()
				s.rotate("A", map[string]time.Duration{"B": listed, "C": listed})
				s.write("B", release("b", "before the child's iterator"))
				if got := s.next(a, interval*11/10+10*time.Millisecond); got.RVN != "last page" {
					t.Errorf("got %+v", got)
				}
				if got := s.next(b, listed+2*interval); got.RVN != "before the child's iterator" {
					t.Errorf("got %+v", got)
				}
				began, ok := s.first(func(c fakeCall) bool { return c.op == "GetRecords" && c.shard == "B" })
				possible := rotated.Add(max(listed, interval)) // listed, and the parent read to its end
				if !ok || began.at.After(possible.Add(300*time.Millisecond)) {
					t.Errorf("child read from %v, listed %v", began.at.Sub(rotated), listed)
				}
				s.write("C", release("c", "c1"))
				s.next(c, 2*interval)
				// An orderly change of shards is no gap: nobody has to look.
				if st := s.w.Stats(); st.State != Live || st.Resyncs != 0 || len(st.Gaps) != 0 || st.Shards != 2 {
					t.Errorf("stats %+v", st)
				}
				if n := s.matching(func(c fakeCall) bool { return c.shard == "B" && c.kind == types.ShardIteratorTypeLatest }); n > 0 {
					t.Error("a child was read from LATEST")
				}
			})
		})
	}
}

// Cases: S25, R3
func TestHalfListedSplit(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.rotate("A", map[string]time.Duration{"B": 0, "C": 30 * time.Second})
		time.Sleep(time.Second)
		s.write("C", release("a", "c1"))
		s.silent(wt, 25*time.Second)
		if c := s.next(wt, 2*time.Minute); c.RVN != "c1" && c.Kind != lockevent.Resync {
			t.Errorf("got %+v", c)
		}
		time.Sleep(time.Second)
		if st := s.w.Stats(); st.Resyncs != 1 || st.Gaps[CauseLate] != 1 || st.State != Live {
			t.Errorf("stats %+v", st)
		}
	})
}

// Cases: R3
func TestLateLeaf(t *testing.T) {
	f := func() *fake {
		old := newFake(&fakeShard{id: "A"})
		old.write("A", release("a", "too old"))
		old.shards = append(old.shards, &fakeShard{id: "B"})
		return old
	}
	bubble(t, f, func(t *testing.T, s *stand) {
		time.Sleep(time.Hour)
		s.edit(func() { s.find("A").listedAt = time.Now().Add(2 * time.Second) })
		wt := s.live("a")
		s.write("A", release("a", "r1")) // to a shard that no list shows yet
		s.told(wt, "r1", 4*time.Second)
		time.Sleep(time.Second)
		if st := s.w.Stats(); st.Wakes != 1 || st.Resyncs != 1 || st.Stale != 1 {
			t.Errorf("stats %+v: want one resync, and the old record left out", st)
		}
	})
}

// Cases: R4, S30, SF6
func TestNoChildIsAGap(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.rotate("A", nil)
		closed := time.Now()
		s.resync(wt, 3*time.Second)
		if st := s.w.Stats(); st.State != Gap || st.Gaps[CauseOrphan] != 1 {
			t.Errorf("stats %+v", st)
		}
		time.Sleep(10 * time.Minute)
		if n := s.count("DescribeStream", closed); n > 60 {
			t.Errorf("%d calls in ten minutes: not bounded", n)
		}
		if st := s.w.Stats(); st.State != Degraded {
			t.Errorf("state %v: waiters would hang in Ready", st.State)
		}
		s.edit(func() { s.shards = append(s.shards, &fakeShard{id: "B", parent: "A"}) })
		s.write("B", release("a", "r1"))
		s.until(Live, time.Minute)
		s.resync(wt, time.Second)
		s.wakes(wt, "B", "a")
	})
}

// A shard that ended long ago and whose child is gone does not keep the others from
// being served.
//
// Cases: S25
func TestChildNeverComes(t *testing.T) {
	f := func() *fake { return newFake(&fakeShard{id: "A", closed: true}, &fakeShard{id: "B"}) }
	bubble(t, f, func(t *testing.T, s *stand) {
		wt := s.w.Watch("a")
		s.until(Gap, 3*time.Second)
		time.Sleep(5*time.Minute + childListed*6/5)
		s.until(Live, time.Second)
		s.wakes(wt, "B", "a")
		s.edit(func() { s.shards = append(s.shards, &fakeShard{id: "C", parent: "A"}) })
		s.write("C", release("a", "r1"))
		s.told(wt, "r1", 2*time.Minute)
		s.wakes(wt, "C", "a")
	})
}

// Cases: S4, S19
func TestADayOfRotation(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		shard := "A"
		for hour := range 24 {
			if hour%4 == 3 {
				child := fmt.Sprintf("A%d", hour)
				s.rotate(shard, map[string]time.Duration{child: time.Duration(hour) * 50 * time.Millisecond})
				shard = child
				if hour > 8 { // the service forgets shards after a day; here earlier
					s.edit(func() { s.shards[0].removed, s.shards[0].gone = true, true })
				}
			}
			for i := range 4 {
				rvn := fmt.Sprintf("%d/%d", hour, i)
				s.write(shard, release("a", rvn))
				if c := s.change(wt, 3*time.Second); c.RVN != rvn {
					t.Fatalf("hour %d: got %+v", hour, c)
				}
				time.Sleep(15 * time.Minute)
			}
		}
		if st := s.w.Stats(); st.Resyncs != 0 || st.Shards != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// Cases: S26
func TestParentNotListed(t *testing.T) {
	f := func() *fake {
		return newFake(&fakeShard{id: "B", parent: "gone"}, &fakeShard{id: "S", parent: "S"})
	}
	bubble(t, f, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.write("B", release("a", "r1"))
		if c := s.next(wt, 2*interval); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
		s.edit(func() { s.shards = append(s.shards, &fakeShard{id: "D", parent: "never seen"}) })
		s.write("D", release("a", "r2"))
		s.told(wt, "r2", 2*time.Minute)
		s.wakes(wt, "D", "a")
	})
}

// Cases: S17, S3, SF9
func TestManyShards(t *testing.T) {
	for _, n := range []int{101, 500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func() *fake { return manyShards(n) }, func(t *testing.T, s *stand) {
				limit := limiter(10)
				s.edit(func() {
					s.shuffle = true
					s.fault = func(c fakeCall) error {
						if c.op == "DescribeStream" && !limit() {
							return apiError("LimitExceededException")
						}
						return nil
					}
				})
				other := s.watcher()
				o := other.Watch("a")
				wt := s.live("a")
				last := fmt.Sprintf("S%04d", n-1)
				for _, shard := range []string{"S0000", "S0100", last} {
					s.write(shard, release("a", shard))
					if c := s.change(wt, 2*interval); c.RVN != shard {
						t.Errorf("got %+v", c)
					}
				}
				if err := other.Ready(t.Context(), o); err != nil {
					t.Error(err)
				}
				if st := s.w.Stats(); st.Shards != n || st.Generation != 1 {
					t.Errorf("stats %+v", st)
				}
				time.Sleep(5 * time.Second)
				if st := s.w.Stats(); st.State != Live || st.Resyncs > 0 {
					t.Errorf("stats %+v: lists that are throttled must not stop the reading", st)
				}
			})
		})
	}
}

func manyShards(n int) *fake {
	shards := make([]*fakeShard, n)
	for i := range shards {
		shards[i] = &fakeShard{id: fmt.Sprintf("S%04d", i)}
	}
	return newFake(shards...)
}

// limiter allows so many calls a second, over all callers; the fake calls it without
// its mutex.
func limiter(perSecond int) func() bool {
	tokens, filled := make(chan struct{}, perSecond), time.Now()
	turn := make(chan struct{}, 1)
	for range perSecond {
		tokens <- struct{}{}
	}
	return func() bool {
		turn <- struct{}{}
		defer func() { <-turn }()
		for time.Since(filled) >= time.Second/time.Duration(perSecond) {
			filled = filled.Add(time.Second / time.Duration(perSecond))
			select {
			case tokens <- struct{}{}:
			default:
			}
		}
		select {
		case <-tokens:
			return true
		default:
			return false
		}
	}
}

// Many shards that end together are followed by full lists, not by a search each.
func TestManyShardsRotate(t *testing.T) {
	bubble(t, func() *fake { return manyShards(50) }, func(t *testing.T, s *stand) {
		wt := s.live("a")
		rotated := time.Now()
		for i := range 50 {
			s.rotate(fmt.Sprintf("S%04d", i), map[string]time.Duration{fmt.Sprintf("T%04d", i): 400 * time.Millisecond})
		}
		s.write("T0049", release("a", "r1"))
		if c := s.change(wt, 2*time.Second); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
		time.Sleep(20 * time.Second)
		if n := s.count("DescribeStream", rotated); n > 25 {
			t.Errorf("%d calls of DescribeStream", n)
		}
		if st := s.w.Stats(); st.Shards != 50 || st.State != Live {
			t.Errorf("stats %+v", st)
		}
	})
}

// A new stream shows no shard for a while.
func TestNoShardYet(t *testing.T) {
	bubble(t, func() *fake { return newFake() }, func(t *testing.T, s *stand) {
		wt := s.w.Watch("a")
		time.Sleep(5 * time.Second)
		if n := s.count("DescribeStream", time.Time{}); n > 14 {
			t.Errorf("%d calls", n)
		}
		s.edit(func() { s.shards = append(s.shards, &fakeShard{id: "A"}) })
		s.ready(wt)
		s.write("A", release("a", "r1"))
		s.change(wt, 2*interval)
	})
}
