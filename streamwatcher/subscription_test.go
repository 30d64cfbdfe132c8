package streamwatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

// event waits for a subscription's next change.
func (s *stand) event(sub *Subscription, limit time.Duration) lockevent.Change {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	c, err := sub.Next(ctx)
	if err != nil {
		s.t.Fatalf("nothing within %v: %v; state %v", limit, err, s.w.Stats().State)
	}
	return c
}

func (s *stand) noEvent(sub *Subscription, d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	if c, err := sub.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		s.t.Errorf("got %+v, %v", c, err)
	}
}

// life is the records of one lock from its first holder to its deletion by the service.
func life(name string) []types.Record {
	item := func(rvn string, token int64, op string) attributes {
		a := held(name, rvn, token)
		a["lockOp"] = text(op)
		return a
	}
	renewed := item("r2", 7, "renew")
	passed := item("r3", 8, "handover")
	passed["ownerName"] = text("client#8")
	taken := item("r4", 900, "takeover")
	taken["ownerName"] = text("other#1")
	reaped := free(name, "r5", 900)
	reaped["lockOp"] = text("reap")
	again, released := held(name, "r6", 1000), free(name, "r7", 1000)
	ttl := record(types.OperationTypeRemove, name, released, nil)
	ttl.UserIdentity = &types.Identity{Type: ptr("Service"), PrincipalId: ptr("dynamodb.amazonaws.com")}
	before := renewed
	passed["ownerName"], before["ownerName"] = text("client#8"), text("client#7")
	first := item("r1", 7, "acquire")
	return []types.Record{
		record(types.OperationTypeInsert, name, nil, first), record(types.OperationTypeModify, name, first, renewed),
		record(types.OperationTypeModify, name, renewed, passed), record(types.OperationTypeModify, name, passed, taken),
		record(types.OperationTypeModify, name, taken, reaped), record(types.OperationTypeModify, name, reaped, again),
		record(types.OperationTypeModify, name, again, released), ttl,
		record(types.OperationTypeInsert, name, nil, first), record(types.OperationTypeRemove, name, first, nil),
	}
}

// Cases: Q4, SF20, R12
func TestSubscribe(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		all, some := s.w.Subscribe(), s.w.Subscribe(func(o *SubscribeOptions) { o.Prefix, o.Renewals = "a", true })
		for _, sub := range []*Subscription{all, some} {
			if c := s.event(sub, time.Second); c.Kind != lockevent.Resync || s.w.Stats().State != Live {
				t.Errorf("begins with %+v", c)
			}
		}
		for _, name := range []string{"a", "b"} {
			for _, rec := range life(name) {
				s.write("A", rec)
			}
		}
		want := []string{"acquired", "renewed", "handed over", "taken over", "reaped", "acquired", "released", "deleted by TTL", "acquired", "deleted"}
		got := map[*Subscription][]string{}
		for sub, n := range map[*Subscription]int{all: 18, some: 10} {
			for range n {
				c := s.event(sub, 2*interval)
				what := c.Kind.String()
				if c.Expired {
					what += " by TTL"
				}
				got[sub] = append(got[sub], what)
			}
			s.noEvent(sub, time.Second)
		}
		if !slices.Equal(got[some], want) {
			t.Errorf("with renewals: %v", got[some])
		}
		want = slices.Delete(want, 1, 2)
		if !slices.Equal(got[all], append(slices.Clone(want), want...)) {
			t.Errorf("without: %v", got[all])
		}
		some.Stop()
		some.Stop()
		if _, err := some.Next(t.Context()); !errors.Is(err, lockevent.ErrClosed) {
			t.Errorf("after Stop: %v", err)
		}
		late := s.w.Subscribe()
		if c := s.event(late, time.Nanosecond); c.Kind != lockevent.Resync {
			t.Errorf("begins with %+v", c)
		}
	})
}

// A gap is a resync in its place, and one is enough.
func TestSubscriptionResyncs(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		sub := s.w.Subscribe()
		s.event(sub, time.Second)
		s.write("A", release("a", "r1"))
		time.Sleep(2 * interval)
		s.edit(func() { s.fault = hangs("GetRecords") })
		s.until(Gap, 10*time.Second)
		s.edit(func() { s.fault = nil })
		s.until(Live, 10*time.Second)
		s.write("A", release("a", "r2"))
		time.Sleep(2 * interval)
		for _, want := range []string{"released r1", "resync ", "released r2"} {
			c := s.event(sub, time.Nanosecond)
			if got := c.Kind.String() + " " + c.RVN; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// Cases: SF16
func TestSlowSubscriber(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		slow := s.w.Subscribe()
		s.event(slow, time.Second)
		subs := make([]*Subscription, 10_000)
		for i := range subs {
			subs[i] = s.w.Subscribe(func(o *SubscribeOptions) { o.Prefix = "quick" })
		}
		wt := s.live("quick")
		for i := range 3 * defaultBuffer {
			s.write("A", release("a", fmt.Sprint(i)))
		}
		began := time.Now()
		s.write("A", release("quick", "r1"))
		s.change(wt, interval*11/10+10*s.latency)
		for _, sub := range subs {
			s.event(sub, time.Nanosecond) // its first resync
			if c := s.event(sub, time.Second); c.RVN != "r1" || c.SeenAt.Before(began) {
				t.Fatalf("got %+v", c)
			}
		}
		if len(slow.ring) > defaultBuffer+1 {
			t.Errorf("a ring of %d", len(slow.ring))
		}
		if c := s.event(slow, time.Nanosecond); c.Kind != lockevent.Resync {
			t.Errorf("a subscriber that was slow gets %+v first", c)
		}
		next := -1
		for slow.count > 0 { // the newest, without a hole
			var n int
			if c := s.event(slow, time.Nanosecond); c.Name == "a" {
				if _, err := fmt.Sscan(c.RVN, &n); err != nil || next >= 0 && n != next {
					t.Fatalf("got %+v, want %d", c, next)
				}
				next = n + 1
			}
		}
		if next != 3*defaultBuffer {
			t.Errorf("ends before %d", next)
		}
	})
}

// Cases: SF16
func TestObserverPanics(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.write("A", release("a", "r1"))
		s.change(wt, 2*interval)
		if err := s.w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}, func(o *Options) {
		o.Observer = Observer{
			Request: func(string, error) { panic("request") }, Poll: func(Poll) { panic("poll") },
			Wake: func(lockevent.Change) { panic("wake") }, State: func(State, State, error) { panic("state") },
		}
	})
}

// A subscription keeps the reader going, ends with Close, and takes what is left.
func TestSubscriptionLife(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		sub := s.w.Subscribe()
		time.Sleep(time.Hour)
		if st := s.w.Stats(); st.State != Live || st.Subscriptions != 1 || st.Watches != 0 {
			t.Errorf("stats %+v", st)
		}
		sub.Stop()
		time.Sleep(time.Minute)
		if st := s.w.Stats(); st.State != Dormant {
			t.Errorf("state %v without demand", st.State)
		}
		sub = s.w.Subscribe()
		s.event(sub, time.Second)
		ended := make(chan error, 1)
		go func() {
			_, err := sub.Next(context.Background())
			ended <- err
		}()
		synctest.Wait()
		other := s.w.Subscribe()
		if err := s.w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, lockevent.ErrClosed) {
			t.Errorf("Next: %v", err)
		}
		s.event(other, time.Nanosecond)
		for _, sub := range []*Subscription{other, s.w.Subscribe()} {
			if _, err := sub.Next(t.Context()); !errors.Is(err, lockevent.ErrClosed) {
				t.Errorf("Next: %v", err)
			}
			sub.Stop()
		}
	})
}
