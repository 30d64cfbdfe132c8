package streamwatcher

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

const interval = 250 * time.Millisecond

func TestWakesWithinOneInterval(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		s.write("A", release("a", "old")) // before the arming
		time.Sleep(time.Minute)
		wt := s.live("a")
		s.silent(wt, time.Second)
		written := time.Now()
		s.write("A", release("a", "r1"))
		c := s.next(wt, interval*11/10+2*s.latency)
		if c.Kind != lockevent.Released || c.RVN != "r1" || c.Held || c.Token != 7 || c.Lease != 20*time.Second || c.Sequence == "" {
			t.Errorf("got %+v", c)
		}
		if c.SeenAt.Before(written) || c.SeenAt.After(time.Now()) {
			t.Errorf("seen at %v, not between the write and now", c.SeenAt)
		}
		s.silent(wt, time.Second)
	})
}

// A server like the emulator: the open shard has an end, reads by time are refused and
// the filter is ignored.
//
// Cases: SF8, SF11
func TestPlainServer(t *testing.T) {
	f := func() *fake {
		f := one()
		f.noTimestamp, f.ignoreFilter, f.endOnOpen = true, true, true
		return f
	}
	bubble(t, f, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.write("A", release("a", "r1"))
		if c := s.next(wt, 2*interval); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
		s.rotate("A", map[string]time.Duration{"B": 0})
		s.write("B", release("a", "r2"))
		if c := s.next(wt, 4*interval); c.RVN != "r2" {
			t.Errorf("got %+v", c)
		}
		// What the server has not is asked once.
		refused := s.matching(func(c fakeCall) bool { return c.kind == types.ShardIteratorTypeAtTimestamp })
		if refused != 1 {
			t.Errorf("%d reads by time, want 1", refused)
		}
	})
}

// Cases: S23, SF10
func TestLazyLatest(t *testing.T) {
	f := func() *fake {
		f := one()
		f.noTimestamp, f.lazyLatest = true, true
		return f
	}
	bubble(t, f, func(t *testing.T, s *stand) {
		wt := s.w.Watch("a")
		// A write between the iterator and its first use is not seen by the stream's
		// reader. Ready must not have been nil before it.
		s.edit(func() {
			s.fault = func(c fakeCall) error {
				if c.op == "GetRecords" && c.n == 0 {
					s.write("A", release("a", "unseen"))
					if st := s.w.Stats().State; st == Live {
						t.Errorf("live before the first answer")
					}
				}
				return nil
			}
		})
		s.ready(wt)
		s.write("A", release("a", "r1"))
		if c := s.next(wt, 2*interval); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
	})
}

// Cases: R12, R6, Q4, SF20
func TestOnePage(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		a, b := s.live("a"), s.w.Watch("b")
		another := s.w.Watch("a")
		// Both names change in one page, and b's waiter does not look.
		for range 3 {
			s.write("A", release("b", "b1"))
		}
		s.write("A", remove("a"))
		again := held("a", "reborn", 3) // a lower token than before
		again["lockOp"] = text("release")
		s.write("A", record(types.OperationTypeInsert, "a", nil, again))
		time.Sleep(2 * interval)
		for _, wt := range []lockevent.Watch{a, another} {
			c := s.next(wt, time.Nanosecond)
			if c.Kind != lockevent.Acquired || c.RVN != "reborn" || c.Token != 3 || !c.Held {
				t.Errorf("got %+v", c)
			}
		}
		ttl := remove("a")
		ttl.UserIdentity = &types.Identity{Type: ptr("Service"), PrincipalId: ptr("dynamodb.amazonaws.com")}
		s.write("A", ttl)
		if c := s.next(a, 2*interval); c.Kind != lockevent.Deleted || c.Token != 7 || c.RVN != "" || c.Held {
			t.Errorf("got %+v", c)
		}
		if c, ok := b.Latest(); !ok || c.RVN != "b1" {
			t.Errorf("slow waiter has %+v, %v", c, ok)
		}
		b.Stop()
		b.Stop()
		s.write("A", release("b", "b2"))
		s.silent(b, time.Second)
	})
}

// An empty page is not the end of what a shard holds.
func TestEmptyPages(t *testing.T) {
	f := func() *fake {
		f := one()
		f.emptyPages = quickPolls - 1
		return f
	}
	bubble(t, f, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.rotate("A", map[string]time.Duration{"B": 0})
		s.write("B", release("a", "r1"))
		// Found after nine empty pages, within a poll of the parent, a search and the pages.
		if c := s.next(wt, interval*11/10+200*time.Millisecond); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
	})
}

func TestFullPagesWithoutPause(t *testing.T) {
	f := func() *fake {
		f := one()
		f.pageRecords = fullPage
		return f
	}
	bubble(t, f, func(t *testing.T, s *stand) {
		wt := s.live("a")
		for range 5 * fullPage {
			s.write("A", release("b", "x"))
		}
		s.write("A", release("a", "r1"))
		if c := s.next(wt, interval*11/10+20*s.latency); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
	})
}

func ptr[T any](v T) *T { return &v }
