package lockitem_test

import (
	"testing"

	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// TestClassify is the truth table of change kinds: every pair of images that a lock's
// writes, a foreign client's or the service's own deletion can leave.
func TestClassify(t *testing.T) {
	none := (*lockitem.Item)(nil)
	item := func(owner, rvn, op string, token int64, released bool) *lockitem.Item {
		return &lockitem.Item{Owner: owner, RVN: rvn, Op: op, Token: token, HasToken: token != 0, Released: released}
	}
	for _, tc := range []struct {
		name          string
		before, after *lockitem.Item
		want          lockevent.Kind
	}{
		{"nothing known", none, none, lockevent.Unknown},
		{"first acquire", none, item("a#1", "r1", "acquire", 10, false), lockevent.Acquired},
		{"acquire of a released lock", item("a#1", "r1", "release", 10, true), item("b#1", "r2", "acquire", 20, false), lockevent.Acquired},
		{"acquired again by the same client", item("a#1", "r1", "release", 10, true), item("a#2", "r2", "acquire", 20, false), lockevent.Acquired},
		{"renewal", item("a#1", "r1", "acquire", 10, false), item("a#1", "r2", "renew", 10, false), lockevent.Renewed},
		{"write that left the version", item("a#1", "r1", "renew", 10, false), item("a#1", "r1", "renew", 10, false), lockevent.Renewed},
		{"release", item("a#1", "r1", "renew", 10, false), item("a#1", "r2", "release", 10, true), lockevent.Released},
		{"reap", item("a#1", "r1", "renew", 10, false), item("a#1", "r2", "reap", 10, true), lockevent.Reaped},
		{"reap of a lock of which the foreign holder left a stale reap", item("f", "r1", "reap", 10, false), item("f", "r2", "reap", 10, true), lockevent.Released},
		{"foreign release that leaves lockOp as it was", item("f", "r1", "renew", 0, false), item("f", "r1", "renew", 0, true), lockevent.Released},
		{"foreign takeover that leaves lockOp as it was", item("a#1", "r1", "renew", 10, false), item("f", "r2", "renew", 0, false), lockevent.TakenOver},
		{"takeover", item("a#1", "r1", "renew", 10, false), item("b#1", "r2", "takeover", 20, false), lockevent.TakenOver},
		{"takeover by the holder's own client", item("a#1", "r1", "renew", 10, false), item("a#2", "r2", "takeover", 20, false), lockevent.TakenOver},
		{"takeover by another client with the next token", item("a#1", "r1", "renew", 10, false), item("b#1", "r2", "takeover", 11, false), lockevent.TakenOver},
		{"takeover between foreign clients", item("f", "r1", "", 0, false), item("g", "r2", "", 0, false), lockevent.TakenOver},
		{"hand-over", item("a#1", "r1", "acquire", 10, false), item("a#2", "r2", "handover", 11, false), lockevent.HandedOver},
		{"hand-over after a hand-over", item("a#2", "r2", "handover", 11, false), item("a#3", "r3", "handover", 12, false), lockevent.HandedOver},
		{"token raised on a free lock", item("a#1", "r1", "release", 10, true), item("a#1", "r2", "release", 20, true), lockevent.Released},
		{"tombstone", none, item("", "r1", "release", 10, true), lockevent.Released},
		{"deleted while free", item("a#1", "r1", "release", 10, true), none, lockevent.Deleted},
		{"deleted while held", item("a#1", "r1", "renew", 10, false), none, lockevent.Deleted},
	} {
		if got := lockitem.Classify(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
