package streamwatcher

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	schedules = flag.Int("schedules", 100, "how many random schedules TestNoLostWakeUp plays")
	plain     = flag.Bool("plain", false, "play them without the SDK's clients")
	firstSeed = flag.Uint64("seed", 0, "the seed of the first one")
)

// Each schedule must be worth its name.
const (
	leastCalls = 200
	players    = 2
)

// TestNoLostWakeUp plays random schedules. A schedule follows from its seed, so one that
// fails is played once more to print what happened.
//
// Cases: R2, R3, R4, R8, Q1, Q2, Q3, SF14
func TestNoLostWakeUp(t *testing.T) {
	var mu sync.Mutex
	var total summary
	began := time.Now()
	t.Run("schedules", func(t *testing.T) {
		for player := range uint64(players) {
			t.Run(fmt.Sprint(player), func(t *testing.T) {
				t.Parallel()
				for i := player; i < uint64(*schedules); i += players {
					seed := *firstSeed + i
					out := play(t, seed, !*plain, sound, false)
					mu.Lock()
					total.add(out)
					mu.Unlock()
					if out.lost != "" {
						again := play(t, seed, !*plain, sound, true)
						t.Fatalf("seed %d: %s\nonce more: %q\n%s\n%+v", seed, out.lost, again.lost, again.line, again.stats)
					}
				}
			})
		}
	})
	if total.LeastCalls < leastCalls {
		t.Errorf("a schedule of %d calls", total.LeastCalls)
	}
	total.Proof, total.FirstSeed, total.SDK, total.Seconds = "no lost wake-up", *firstSeed, !*plain, time.Since(began).Seconds()
	if text, err := json.Marshal(total); err != nil {
		t.Error(err)
	} else {
		fmt.Printf("RESULT %s\n", text)
	}
}

// summary is the sum of many outcomes.
type summary struct {
	Proof      string  `json:"proof"`
	FirstSeed  uint64  `json:"first_seed"`
	SDK        bool    `json:"through_sdk_clients"`
	Schedules  int     `json:"schedules"`
	Lost       int     `json:"lost_wake_ups"`
	Calls      int     `json:"stream_calls"`
	LeastCalls int     `json:"least_calls_of_a_schedule"`
	Writes     int     `json:"writes"`
	Wakes      uint64  `json:"wakes"`
	Resyncs    uint64  `json:"resyncs"`
	Seconds    float64 `json:"seconds"`
}

func (s *summary) add(out outcome) {
	if s.Schedules == 0 || out.calls < s.LeastCalls {
		s.LeastCalls = out.calls
	}
	if out.lost != "" {
		s.Lost++
	}
	s.Schedules++
	s.Calls += out.calls
	s.Writes += out.writes
	s.Wakes += out.stats.Wakes
	s.Resyncs += out.stats.Resyncs
}

// A schedule is the same every time, through both fronts of the simulator.
func TestSchedulesReproduce(t *testing.T) {
	for seed := range uint64(6) {
		for _, sdk := range []bool{false, true} {
			one, two := play(t, seed, sdk, sound, true), play(t, seed, sdk, sound, true)
			if one.line != two.line || one.calls != two.calls {
				t.Fatalf("seed %d, SDK %v: %d calls and %d; after\n%s", seed, sdk, one.calls, two.calls, parting(one.line, two.line))
			}
		}
	}
}

// parting returns the lines around the first difference.
func parting(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return strings.Join(x[max(0, i-10):min(len(x), i+5)], "\n") + "\nor\n" + strings.Join(y[i:min(len(y), i+5)], "\n")
		}
	}
	return "no difference but the length"
}
