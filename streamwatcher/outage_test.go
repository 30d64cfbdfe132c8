package streamwatcher

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

// Cases: S18, SF14
func TestOutage(t *testing.T) {
	for _, failure := range []error{errHang, apiError("InternalServerError"), errors.New("dial tcp: no such host")} {
		t.Run(failure.Error(), func(t *testing.T) {
			bubble(t, one, func(t *testing.T, s *stand) {
				wt := s.live("a")
				s.write("A", release("a", "r1"))
				s.next(wt, 2*interval)
				s.edit(func() {
					s.iteratorLife = 15 * time.Minute
					s.fault = func(fakeCall) error { return failure }
				})
				began := time.Now()
				s.resync(wt, 2*time.Second+interval+tick)
				if st := s.w.Stats(); st.State != Gap || st.Gaps[CauseSilent] != 1 {
					t.Errorf("after %v: %+v", time.Since(began), st)
				}
				for range 200 {
					s.write("A", release("a", "backlog"))
				}
				time.Sleep(20 * time.Minute)
				if err := s.w.Ready(t.Context(), wt); !errors.Is(err, lockevent.ErrDegraded) {
					t.Errorf("Ready: %v", err)
				}
				s.edit(func() { s.fault = nil })
				ended := time.Now()
				s.until(Live, 6*time.Second+2*time.Second) // a hung call may just have begun
				if failure != errHang && time.Since(ended) > 6*time.Second {
					t.Errorf("live after %v", time.Since(ended))
				}
				s.resync(wt, time.Second)
				s.silent(wt, time.Second) // the backlog is skipped
				s.wakes(wt, "A", "a")
			})
		})
	}
}

// A call that never answers is ended by its time-out, and a short one is no gap.
func TestHungCall(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		hung := false
		s.edit(func() {
			s.fault = func(c fakeCall) error {
				if c.op == "GetRecords" && !hung {
					hung = true
					return errHang
				}
				return nil
			}
		})
		s.write("A", release("a", "r1"))
		s.resync(wt, 3*time.Second)
		s.told(wt, "r1", time.Second)
		s.until(Live, time.Second)
		s.wakes(wt, "A", "a")
	}, func(o *Options) {
		o.Observer.Request = func(op string, err error) {
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", op, err)
			}
		}
	})
}

func TestShortFaultIsNoGap(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		start := time.Now()
		s.edit(func() {
			s.fault = func(fakeCall) error {
				if time.Since(start) < time.Second {
					return apiError("InternalServerError")
				}
				return nil
			}
		})
		s.write("A", release("a", "r1"))
		if c := s.next(wt, 3*time.Second); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
		if st := s.w.Stats(); len(st.Gaps) > 0 || st.Resyncs > 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// Cases: S10, SF15
func TestSuspended(t *testing.T) {
	for _, test := range []struct {
		jump time.Duration
		arms int // first reads: one more where everything begins again
	}{{500 * time.Millisecond, 1}, {5 * time.Second, 1}, {-time.Hour, 1}, {16 * time.Minute, 2}, {25 * time.Hour, 2}} {
		t.Run(test.jump.String(), func(t *testing.T) {
			bubble(t, one, func(t *testing.T, s *stand) {
				drift := make(chan time.Duration, 1)
				drift <- 0
				s.w.drift = func() time.Duration {
					d := <-drift
					drift <- d
					return d
				}
				wt := s.live("a")
				<-drift
				if test.jump >= time.Minute { // what the service has forgotten meanwhile
					s.edit(func() {
						s.find("A").gone, s.find("A").removed = true, true
						s.shards = append(s.shards, &fakeShard{id: "Z"})
						s.age += test.jump
					})
				}
				drift <- test.jump
				shard := "A"
				if test.jump >= time.Minute {
					shard = "Z"
				}
				if test.jump.Abs() > driftAllowed {
					s.resync(wt, 2*tick)
					s.until(Live, 2*time.Second)
				}
				time.Sleep(time.Second)
				s.write(shard, release("a", "r1"))
				if c := s.change(wt, 2*interval); c.RVN != "r1" {
					t.Errorf("got %+v", c)
				}
				time.Sleep(time.Minute)
				gaps := s.w.Stats().Gaps[CauseClock]
				if want := uint64(1); test.jump.Abs() > driftAllowed && gaps != want || test.jump.Abs() <= driftAllowed && gaps != 0 {
					t.Errorf("%d gaps for a jump of %v", gaps, test.jump)
				}
				first := s.matching(func(c fakeCall) bool { return c.kind == types.ShardIteratorTypeAtTimestamp })
				if first != test.arms {
					t.Errorf("%d iterators by time, want %d", first, test.arms)
				}
			})
		})
	}
}
