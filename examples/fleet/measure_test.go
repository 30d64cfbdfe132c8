package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = instant(time.Millisecond)

// held makes a hold that ended in a plain release.
func held(worker int, token int64, acquired, end instant) *hold {
	return &hold{lock: "cool-1", worker: worker, token: token, called: acquired - ms, acquired: acquired, end: end, released: true}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, test := range []struct {
		values []time.Duration
		p      float64
		want   time.Duration
	}{
		{nil, 0.5, 0},
		{[]time.Duration{7}, 0.5, 7},
		{[]time.Duration{7}, 0.99, 7},
		{[]time.Duration{3, 1, 2}, 0.5, 2},
		{[]time.Duration{4, 1, 3, 2}, 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := percentile(test.values, test.p); got != test.want {
			t.Errorf("percentile of %d values at %v is %v, want %v", len(test.values), test.p, got, test.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the values were sorted in place")
	}
}

func TestRemoteHandoffs(t *testing.T) {
	handed := held(1, 30, 50*ms, 60*ms)
	handed.handedOver = true
	lost := held(2, 50, 90*ms, 100*ms)
	lost.released, lost.lost = false, true
	// Out of order, as events of several processes arrive.
	holds := []*hold{
		held(1, 40, 61*ms, 70*ms), // handed over to it by 30
		held(1, 10, 0, 10*ms),
		held(2, 20, 15*ms, 45*ms), // after 10, another process: counts
		handed,                    // after 20, another process: counts
		lost,                      // after 40, another process: counts
		held(1, 60, 120*ms, 130*ms),
		held(1, 70, 140*ms, 150*ms), // after 60, the same process
	}
	var got [][2]int64
	for _, pair := range remoteHandoffs(holds) {
		got = append(got, [2]int64{pair.from.token, pair.to.token})
	}
	if want := [][2]int64{{10, 20}, {20, 30}, {40, 50}}; !slices.Equal(got, want) {
		t.Errorf("pairs are %v, want %v", got, want)
	}
	if latency := remoteHandoffs(holds)[0].latency(); latency != 5*time.Millisecond {
		t.Errorf("latency is %v, want 5ms", latency)
	}
	if n := localHandoffs(holds); n != 1 {
		t.Errorf("%d local hand-offs, want 1", n)
	}
}

func TestCoolLatencies(t *testing.T) {
	late := held(2, 40, 900*ms, 950*ms)
	late.called = 890 * ms // it came long after the release
	h := newHistory(lockNames(false))
	h.holds["cool-1"] = []*hold{held(1, 10, 0, 100*ms), held(2, 20, 130*ms, 200*ms), held(1, 30, 240*ms, 300*ms), late}
	for _, pair := range h.holds["cool-1"][1:3] {
		pair.called = 50 * ms
	}
	h.holds[hotLock] = []*hold{held(1, 10, 0, 100*ms), held(2, 20, 101*ms, 200*ms)}
	h.holds[hotLock][1].called = 0
	if got, want := h.coolLatencies(), []time.Duration{30 * time.Millisecond, 40 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("latencies are %v, want %v: only of contenders that waited, and not of the hot lock", got, want)
	}
	h.outages = []outage{{worker: 3, locks: []string{"cool-1"}, from: 210 * ms, to: 220 * ms}}
	if got, want := h.coolLatencies(), []time.Duration{30 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("latencies are %v, want %v: one was disturbed", got, want)
	}
	h.outages[0].locks = []string{"cool-2"}
	if got := h.coolLatencies(); len(got) != 2 {
		t.Errorf("latencies are %v, want both: the fault was on another lock", got)
	}
}

func TestCheckOrder(t *testing.T) {
	unended := held(1, 10, 0, 0)
	unended.released = false
	paused := []outage{{worker: 1, from: 50 * ms, to: 500 * ms}}
	killed := []outage{{worker: 1, from: 50 * ms, killed: true}}
	for _, test := range []struct {
		name    string
		holds   []*hold
		outages []outage
		want    string // in the error; "" for none
	}{
		{"one after the other", []*hold{held(1, 10, 0, 5*ms), held(2, 20, 6*ms, 9*ms), held(1, 21, 9*ms, 12*ms)}, nil, ""},
		{"told in another order", []*hold{held(2, 20, 6*ms, 9*ms), held(1, 10, 0, 5*ms)}, nil, ""},
		{"one token twice", []*hold{held(1, 10, 0, 5*ms), held(2, 10, 6*ms, 9*ms)}, nil, "token 10 was given to worker 1 and to worker 2"},
		{"a smaller token later", []*hold{held(1, 20, 0, 5*ms), held(2, 10, 6*ms, 9*ms)}, nil, "token 20 is above 10"},
		{"two at once", []*hold{held(1, 10, 0, 5*ms), held(2, 20, 4*ms, 9*ms)}, nil, "held it 1ms before"},
		{"one within another", []*hold{held(1, 10, 0, 50*ms), held(2, 20, 4*ms, 9*ms), held(3, 30, 60*ms, 70*ms)}, nil, "held it 46ms before"},
		{"never ended", []*hold{unended, held(2, 20, 6*ms, 9*ms)}, nil, "never ended"},
		{"ended before it began", []*hold{held(1, 10, 10*ms, 5*ms)}, nil, "ended before it was acquired"},
		{"killed in it", []*hold{unended, held(2, 20, 60*ms, 70*ms)}, killed, ""},
		{"another while the killed one held", []*hold{unended, held(2, 20, 40*ms, 70*ms)}, killed, "held it 10ms before"},
		{"paused in it", []*hold{held(1, 10, 0, 510*ms), held(2, 20, 400*ms, 450*ms)}, paused, ""},
		{"two at once beside a pause", []*hold{held(2, 5, 0, 20*ms), held(3, 7, 10*ms, 30*ms), held(1, 10, 40*ms, 510*ms)}, paused, "held it 10ms before"},
		{"acquired by the paused one while another held", []*hold{held(2, 5, 0, 45*ms), held(1, 10, 40*ms, 510*ms)}, paused, "held it 5ms before"},
		{"ended before the pause", []*hold{held(1, 10, 0, 40*ms), held(2, 20, 30*ms, 60*ms)}, paused, "held it 10ms before"},
		{"a pause of another process", []*hold{held(2, 10, 0, 510*ms), held(3, 20, 400*ms, 450*ms)}, paused, "held it 110ms before"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := checkOrder(test.holds, test.outages)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestCheckCounter(t *testing.T) {
	for _, test := range []struct {
		counter, acknowledged, killed int
		ok                            bool
	}{
		{10, 10, 0, true},
		{11, 10, 0, false}, // written without an acknowledgement
		{9, 10, 0, false},  // acknowledged and not there
		{10, 10, 1, true},
		{11, 10, 1, true},
		{12, 10, 1, false},
		{0, 0, 0, true},
	} {
		if err := checkCounter("hot", test.counter, test.acknowledged, test.killed); (err == nil) != test.ok {
			t.Errorf("counter %d, acknowledged %d, killed %d: %v", test.counter, test.acknowledged, test.killed, err)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0 ms", 2400 * time.Microsecond: "2.4 ms", 31 * time.Millisecond: "31 ms", 3 * time.Second: "3 s", 2456 * time.Millisecond: "2.46 s",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%v) is %q, want %q", d, got, want)
		}
	}
}
