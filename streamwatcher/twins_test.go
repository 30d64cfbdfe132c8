package streamwatcher

import "testing"

// Each flaw is found by the schedule of the given seed, which a sound reader passes. A
// change of the schedules needs other seeds: play them with -schedules until one finds it.
//
// Cases: S1, S2, R7, SF3
func TestFlawsAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		flaw flaw
		seed uint64
	}{
		"children at LATEST":                  {flawChildrenLatest, 3},
		"last page of a closed shard dropped": {flawLastPage, 6},
		"watch after read":                    {flawWatchLate, 3},
		"position moved before hand-over":     {flawPositionFirst, 308},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sdk := range []bool{false, true} {
				if out := play(t, test.seed, sdk, test.flaw, true); out.lost == "" {
					t.Errorf("seed %d, SDK %v: not found\n%s", test.seed, sdk, out.line)
				}
				if out := play(t, test.seed, sdk, sound, false); out.lost != "" {
					t.Errorf("seed %d, SDK %v: a sound reader: %s", test.seed, sdk, out.lost)
				}
			}
		})
	}
}
