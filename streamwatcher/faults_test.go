package streamwatcher

import (
	"errors"
	"fmt"
	"testing"
	"time"

	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/lockstream/lockstream/lockevent"
)

// Cases: S8, Q3, SF3
func TestExpiredIterator(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		var seen []string
		wt := s.live("a")
		s.write("A", release("a", "r1"))
		seen = append(seen, s.next(wt, 2*interval).RVN)
		s.edit(func() { s.iteratorLife = time.Nanosecond }) // every iterator there is
		s.write("A", release("a", "r2"))
		time.Sleep(2 * interval)
		s.edit(func() { s.iteratorLife = 0 })
		var resyncs int
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			switch c, ok := wt.Latest(); {
			case ok && c.Kind == lockevent.Resync:
				resyncs++
			case ok:
				seen = append(seen, c.RVN)
			}
		}
		if resyncs == 0 {
			t.Error("no resync")
		}
		if st := s.w.Stats(); st.State != Live || st.Records != 2 || st.Gaps[CauseExpired] != 1 {
			t.Errorf("stats %+v: every record must come once; seen %v", st, seen)
		}
	})
}

// An iterator that expires before any record came has no position to resume from.
//
// Cases: SF3
func TestExpiredWithoutPosition(t *testing.T) {
	for _, noTimestamp := range []bool{false, true} {
		t.Run(fmt.Sprint(noTimestamp), func(t *testing.T) {
			f := func() *fake {
				f := one()
				f.noTimestamp = noTimestamp
				f.write("A", release("a", "history"))
				return f
			}
			bubble(t, f, func(t *testing.T, s *stand) {
				time.Sleep(time.Hour)
				wt := s.live("a")
				expired := false
				s.edit(func() {
					s.fault = func(c fakeCall) error {
						if c.op == "GetRecords" && !expired {
							expired = true
							s.write("A", release("a", "between"))
							return apiError("ExpiredIteratorException")
						}
						return nil
					}
				})
				s.resync(wt, 2*time.Second) // before reading goes on, so that nothing depends on it
				s.until(Live, time.Second)
				s.write("A", release("a", "r1"))
				for c := s.change(wt, 2*interval); c.RVN != "r1"; c = s.change(wt, 2*interval) {
					if c.RVN != "between" {
						t.Errorf("got %+v", c)
					}
				}
			})
		})
	}
}

// Cases: S7, S14, S20, SF5
func TestExpiredThenGone(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.edit(func() {
			s.iteratorLife = time.Nanosecond
			s.find("A").gone, s.find("A").removed, s.find("A").closed = true, true, true
			s.shards = append(s.shards, &fakeShard{id: "B", parent: "A"})
		})
		lost := time.Now()
		s.resync(wt, 2*time.Second)
		s.edit(func() { s.iteratorLife = 0 })
		s.until(Live, 5*time.Second)
		s.write("B", release("a", "r1"))
		if c := s.change(wt, 2*interval); c.RVN != "r1" {
			t.Errorf("got %+v", c)
		}
		time.Sleep(time.Minute)
		dead := s.matching(func(c fakeCall) bool { return c.shard == "A" && c.op != "DescribeStream" && c.at.After(lost) })
		if dead > 3 {
			t.Errorf("%d calls to a dead shard", dead)
		}
		if st := s.w.Stats(); st.State != Live || st.Gaps[CauseLost] != 1 || st.Shards != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// A shard that is said not to exist while it is still listed is read again, not for ever
// at once.
func TestGoneForAMoment(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.write("A", release("a", "r1"))
		s.next(wt, 2*interval)
		s.edit(func() { s.find("A").gone = true })
		s.resync(wt, 2*time.Second)
		start := time.Now()
		time.Sleep(30 * time.Second)
		if n := s.count("GetRecords", start) + s.count("GetShardIterator", start); n > 10 {
			t.Errorf("%d calls in 30 s", n)
		}
		s.edit(func() { s.find("A").gone = false })
		s.write("A", release("a", "r2")) // told of by the resync
		s.until(Live, 2*time.Minute)
		s.resync(wt, time.Second)
		s.wakes(wt, "A", "a")
		if st := s.w.Stats(); st.Records != 3 {
			t.Errorf("stats %+v: reading goes on where it stopped", st)
		}
	})
}

// Cases: S24, Q2, S20, SF4
func TestTrimmedUnderTheReader(t *testing.T) {
	for _, noTimestamp := range []bool{false, true} {
		t.Run(fmt.Sprint(noTimestamp), func(t *testing.T) {
			f := func() *fake {
				f := one()
				f.noTimestamp = noTimestamp
				return f
			}
			bubble(t, f, func(t *testing.T, s *stand) {
				wt := s.live("a")
				s.write("A", release("a", "r1"))
				s.next(wt, 2*interval)
				for range 5 {
					s.write("A", release("a", "trimmed"))
				}
				s.edit(func() { s.find("A").trimmed = 6 })
				s.resync(wt, 2*time.Second)
				s.write("A", release("a", "r2"))
				s.told(wt, "r2", 5*time.Second)
				s.until(Live, time.Second)
				s.wakes(wt, "A", "a")
				if st := s.w.Stats(); st.Gaps[CauseTrimmed] != 1 {
					t.Errorf("stats %+v", st)
				}
			})
		})
	}
}

// Cases: S5, S28
func TestTooManyReaders(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		limit := limiter(5)
		s.edit(func() {
			s.fault = func(c fakeCall) error {
				if c.op == "GetRecords" && !limit() {
					return &smithy.GenericAPIError{Code: "SomethingNew", Message: "Rate exceeded for shard"}
				}
				return nil
			}
		})
		watchers := []*Watcher{s.w, s.watcher(), s.watcher()}
		var watches []lockevent.Watch
		for _, w := range watchers {
			watches = append(watches, w.Watch("a"))
		}
		time.Sleep(10 * time.Minute)
		start := time.Now()
		time.Sleep(time.Minute)
		if n := s.count("GetRecords", start); n > 60*5*3/2 {
			t.Errorf("%d calls in a minute: the interval does not widen", n)
		}
		for i := range 120 { // traffic for minutes: quiet readers slow down and throttle nobody
			rvn := fmt.Sprint(i)
			s.write("A", release("a", rvn))
			for _, wt := range watches {
				for c := s.next(wt, 20*time.Second); c.Kind != lockevent.Resync && c.RVN != rvn; {
					c = s.next(wt, 20*time.Second)
				}
			}
		}
		crowded := 0
		for i, w := range watchers {
			st := w.Stats()
			if st.Crowded {
				crowded++
			}
			if st.Throttles == 0 || st.Gaps[CauseLost]+st.Gaps[CauseExpired] > 0 {
				t.Errorf("reader %d: %+v", i, st)
			}
		}
		if crowded == 0 {
			t.Error("no reader noticed that there are too many")
		}
	})
}

// Cases: S11, Q3, SF2
func TestThrottledDiscovery(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		s.edit(func() {
			s.fault = func(c fakeCall) error {
				if c.n < 10 && c.op != "GetRecords" {
					return apiError("ThrottlingException")
				}
				return nil
			}
		})
		wt := s.w.Watch("a")
		s.until(Degraded, 10*time.Second) // waiters carry themselves meanwhile
		if err := s.w.Ready(t.Context(), wt); !errors.Is(err, ErrUnavailable) || !errors.Is(err, lockevent.ErrDegraded) {
			t.Errorf("Ready: %v", err)
		}
		s.until(Live, 3*time.Minute)
		s.resync(wt, time.Second)
		s.wakes(wt, "A", "a")
		s.edit(func() {
			s.fault = func(c fakeCall) error {
				if c.op == "DescribeStream" {
					return apiError("LimitExceededException")
				}
				return nil
			}
		})
		for i := range 100 { // reading goes on while no list is to be had
			time.Sleep(3 * time.Second)
			rvn := fmt.Sprint(i)
			s.write("A", release("a", rvn))
			if c := s.next(wt, slideMost+interval); c.RVN != rvn {
				t.Fatalf("got %+v", c)
			}
		}
		if st := s.w.Stats(); st.State != Live {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestDegraded(t *testing.T) {
	for name, test := range map[string]struct {
		breakIt func(*fake)
		reason  error
	}{
		"no table":  {func(f *fake) { f.table = nil }, ErrNoTable},
		"no stream": {func(f *fake) { f.table = &dbtypes.TableDescription{} }, ErrNoStream},
		"disabled": {func(f *fake) {
			f.table.StreamSpecification = nil // the old stream is still there
			f.status = types.StreamStatusDisabled
		}, ErrNoStream},
		"view":           {func(f *fake) { f.enable(fakeARN, dbtypes.StreamViewTypeKeysOnly) }, ErrViewType},
		"DescribeTable":  {denies("DescribeTable"), ErrAccess},
		"DescribeStream": {denies("DescribeStream"), ErrAccess},
		"GetRecords":     {denies("GetRecords"), ErrAccess},
		"iterator":       {denies("GetShardIterator"), ErrAccess},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, one, func(t *testing.T, s *stand) {
				s.edit(func() { test.breakIt(s.fake) })
				wt := s.w.Watch("a")
				began := time.Now()
				err := s.w.Ready(t.Context(), wt)
				var typed *StreamError
				if !errors.Is(err, test.reason) || !errors.Is(err, lockevent.ErrDegraded) || !errors.As(err, &typed) || typed.Table != "locks" {
					t.Errorf("Ready: %v", err)
				}
				if time.Since(began) > 100*time.Millisecond {
					t.Errorf("Ready's error came after %v", time.Since(began))
				}
				for range 100 { // at once, whenever it is asked
					if err := s.w.Ready(t.Context(), wt); !errors.Is(err, test.reason) {
						t.Errorf("Ready: %v", err)
					}
				}
				time.Sleep(10 * time.Minute)
				s.fake.mu.Lock()
				calls := len(s.calls)
				s.fake.mu.Unlock()
				if calls < 10 || calls > 100 {
					t.Errorf("%d calls in ten minutes", calls)
				}
				s.edit(func() { s.enable(fakeARN, dbtypes.StreamViewTypeNewAndOldImages); s.fault = nil })
				s.until(Live, 40*time.Second)
				s.resync(wt, time.Second)
				s.wakes(wt, "A", "a")
			})
		})
	}
}

func denies(op string) func(*fake) {
	return func(f *fake) {
		f.fault = func(c fakeCall) error {
			if c.op == op {
				return apiError("AccessDeniedException")
			}
			return nil
		}
	}
}

// The stream is disabled and enabled again while it is read; the table is deleted and
// made anew.
//
// Cases: SF13
func TestNewStream(t *testing.T) {
	for _, recreated := range []bool{false, true} {
		t.Run(fmt.Sprint(recreated), func(t *testing.T) {
			bubble(t, one, func(t *testing.T, s *stand) {
				wt := s.live("a")
				s.edit(func() {
					s.enable(fakeARN+"2", dbtypes.StreamViewTypeNewAndOldImages)
					s.shards[0].closed, s.shards[0].gone = true, recreated
					s.shards[0].removed = true
					s.shards = append(s.shards, &fakeShard{id: "N"})
				})
				s.resync(wt, 5*time.Second)
				s.until(Live, 5*time.Second)
				s.write("N", release("a", "r1"))
				if c := s.change(wt, 2*interval); c.RVN != "r1" {
					t.Errorf("got %+v", c)
				}
			})
		})
	}
}

func TestFilterRefused(t *testing.T) {
	f := func() *fake {
		f := one()
		f.refuseFilter = true
		return f
	}
	bubble(t, f, func(t *testing.T, s *stand) {
		wt := s.live("a")
		for i, child := range []string{"B", "C", "D"} {
			s.rotate([]string{"A", "B", "C"}[i], map[string]time.Duration{child: 0})
			s.write(child, release("a", child))
			if c := s.change(wt, time.Second); c.RVN != child {
				t.Errorf("got %+v", c)
			}
		}
		if n := s.matching(func(c fakeCall) bool { return c.op == "DescribeStream" && c.shard != "" }); n != 1 {
			t.Errorf("%d searches with a filter, want 1", n)
		}
	})
}
