package streamwatcher

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/lockevent"
)

// laterPage reports whether a request asks for more than the first page of a list.
func laterPage(r *fakedynamo.Request) bool {
	in, ok := r.Input.(*dynamodbstreams.DescribeStreamInput)
	return ok && in.ExclusiveStartShardId != nil
}

// Records that come late, and twice: each wakes once, in their order.
//
// Cases: SF12, Q1
func TestLateAndRepeatedRecords(t *testing.T) {
	rules := func(r *fakedynamo.StreamRules) {
		r.Repeat = 3
		n := 0
		r.Delay = func() time.Duration { n++; return time.Duration(n*7%10) * time.Second }
	}
	simulated(t, false, rules, func(t *testing.T, s *sim) {
		wt := s.live("a")
		time.Sleep(time.Second)
		for i := range 20 {
			rvn := fmt.Sprint(i)
			s.put("a", rvn)
			if i%5 == 4 {
				s.Rotate(s.Open()[0])
			}
			for c := s.change(wt, 12*time.Second); c.RVN != rvn; c = s.change(wt, 12*time.Second) {
				t.Errorf("got %+v, want %s", c, rvn)
			}
			s.silent(wt, 3*time.Second)
		}
		if st := s.w.Stats(); st.Wakes != 20 || st.Repeated == 0 || st.Resyncs > 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// A record without images says that something changed, and no more.
//
// Cases: SF13
func TestKeysOnlyIsAHint(t *testing.T) {
	simulated(t, true, nil, func(t *testing.T, s *sim) {
		wt := s.live("a")
		s.Append("", record(types.OperationTypeModify, "a", nil, nil))
		if c := s.change(wt, 2*interval); c.Kind != lockevent.Unknown || c.RVN != "" || c.Name != "a" {
			t.Errorf("got %+v", c)
		}
		if st := s.w.Stats(); st.Hints != 1 || st.State != Live {
			t.Errorf("stats %+v", st)
		}
	})
}

// Every way in which a network or service breaks, through the SDK's clients.
//
// Cases: SF14, S18
func TestBrokenConnections(t *testing.T) {
	for name, fault := range map[string]fakedynamo.Fault{
		"hung":                {DropRequest: true},
		"half-open":           {DropResponse: true},
		"reset":               {Reset: true},
		"reset after":         {Reset: true, AfterApply: true},
		"no DNS":              {Error: errors.New("dial tcp: lookup streams: no such host")},
		"500":                 {Error: &fakedynamo.APIError{Code: "InternalServerError"}},
		"503":                 {Error: &fakedynamo.APIError{Code: "ServiceUnavailable", Status: 503}},
		"truncated JSON":      {TruncateBody: true},
		"expired credentials": {Error: &fakedynamo.APIError{Code: "ExpiredTokenException", Message: "The security token included in the request is expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, true, nil, func(t *testing.T, s *sim) {
				wt := s.live("a")
				s.setBreaks(always("", fault))
				s.put("a", "r1")
				s.resync(wt, 3*time.Second)
				s.until(Gap, time.Second)
				s.until(Degraded, 15*time.Second)
				time.Sleep(time.Minute)
				s.setBreaks(nil)
				s.until(Live, backoffCap+time.Second+2*time.Second) // a call may just have hung
				s.resync(wt, time.Second)
				s.works(wt, "a")
			})
		})
	}
}

// Cases: SF18, S5
func TestManyReaders(t *testing.T) {
	for _, n := range []int{3, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			simulated(t, false, func(r *fakedynamo.StreamRules) { r.ReadsPerSecond, r.ListsPerSecond = 5, 10 }, func(t *testing.T, s *sim) {
				readers := make([]*Watcher, n)
				watches := make([]lockevent.Watch, n)
				for i := range readers {
					readers[i] = s.reader(false)
					readers[i].chanceFor = func(goroutine string) chance { return s.dice(fmt.Sprint(i, goroutine)).Float64 }
					watches[i] = readers[i].Watch("a")
				}
				time.Sleep(5 * time.Minute)
				var before []uint64
				for _, w := range readers {
					before = append(before, w.Stats().Polls)
				}
				for i := range 20 {
					rvn := fmt.Sprint(i)
					s.put("a", rvn)
					for _, wt := range watches {
						s.told(wt, rvn, time.Minute)
					}
				}
				time.Sleep(30 * time.Minute) // fair in the long run: each widens and narrows by chance
				var polls []uint64
				for i, w := range readers {
					polls = append(polls, w.Stats().Polls-before[i])
				}
				if least, most := slices.Min(polls), slices.Max(polls); most > 3*least {
					t.Errorf("polls %v: not fair", polls)
				}
				for _, w := range readers {
					if err := w.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// Cases: SF19
func TestFloodOfRenewals(t *testing.T) {
	simulated(t, false, nil, func(t *testing.T, s *sim) {
		wt := s.live("a")
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				for j := range 3 {
					s.Append("", renewal(fmt.Sprintf("flood-%d", j), fmt.Sprint(i)))
				}
			}
		}()
		var took []time.Duration
		for i := range 100 {
			time.Sleep(time.Duration(i*37%251) * time.Millisecond)
			began := time.Now()
			s.put("a", fmt.Sprint(i))
			s.change(wt, 2*interval)
			took = append(took, time.Since(began))
		}
		close(stop)
		<-done
		slices.Sort(took)
		if p99 := took[98]; p99 > interval+100*time.Millisecond {
			t.Errorf("p99 is %v", p99)
		}
		if st := s.w.Stats(); st.Records < 20_000 {
			t.Errorf("only %d records", st.Records)
		}
	})
}
