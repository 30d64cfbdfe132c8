package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
)

// told reads back what was emitted.
func told(t *testing.T, b *bytes.Buffer) []event {
	t.Helper()
	var all []event
	for dec := json.NewDecoder(b); dec.More(); {
		var e event
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestTrafficTellsUnpromptedRequests(t *testing.T) {
	key := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "hot"}}
	for _, test := range []struct {
		name  string
		stage func(*traffic, lockclient.Observer)
		asked string // by what; "" when the request is fine
	}{
		{"first look", func(*traffic, lockclient.Observer) {}, ""},
		{"waiting", func(_ *traffic, o lockclient.Observer) { o.Waiting("hot") }, "nothing"},
		{"another lock waits", func(_ *traffic, o lockclient.Observer) { o.Waiting("cool-1") }, ""},
		{"event", func(_ *traffic, o lockclient.Observer) { o.Waiting("hot"); o.Woke("hot", lockclient.WakeEvent) }, ""},
		{"expiry", func(_ *traffic, o lockclient.Observer) { o.Waiting("hot"); o.Woke("hot", lockclient.WakeExpiry) }, ""},
		{"resync", func(_ *traffic, o lockclient.Observer) { o.Waiting("hot"); o.Woke("hot", lockclient.WakeResync) }, ""},
		{"poll", func(_ *traffic, o lockclient.Observer) { o.Waiting("hot"); o.Woke("hot", lockclient.WakePoll) }, "poll"},
		{"fallback", func(_ *traffic, o lockclient.Observer) { o.Waiting("hot"); o.Woke("hot", lockclient.WakeFallback) }, "fallback"},
		{"waiting again", func(_ *traffic, o lockclient.Observer) {
			o.Woke("hot", lockclient.WakeEvent)
			o.Waiting("hot")
		}, "nothing"},
		{"holding", func(_ *traffic, o lockclient.Observer) {
			o.Waiting("hot")
			o.Acquired(lockclient.AcquiredEvent{Name: "hot", Token: 1, Wake: lockclient.WakePoll})
		}, ""},
		{"told to go", func(tr *traffic, o lockclient.Observer) { o.Waiting("hot"); tr.freeze() }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			tr := newTraffic(emitter{&out})
			test.stage(tr, tr.observer())
			out.Reset()
			tr.sent(key, "GetItem")(nil)
			got := told(t, &out)
			switch {
			case tr.total() != 1:
				t.Errorf("%d requests counted, want 1", tr.total())
			case test.asked == "" && len(got) > 0:
				t.Errorf("told %+v, want nothing", got)
			case test.asked != "" && (len(got) != 1 || got[0].Kind != evAsked || got[0].By != test.asked || got[0].Won):
				t.Errorf("told %+v, want one unprompted request by %q", got, test.asked)
			}
		})
	}
}

func TestTrafficTellsAcquiringWrites(t *testing.T) {
	key := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "hot"}}
	var out bytes.Buffer
	tr := newTraffic(emitter{&out})
	tr.set("hot", stage{wake: lockclient.WakePoll})
	tr.sent(key, "UpdateItem")(nil)
	tr.sent(key, "UpdateItem")(errors.New("refused"))
	if got := told(t, &out); len(got) != 2 || !got[0].Won || got[1].Won {
		t.Errorf("told %+v", got)
	}
}

func TestTrafficTellsRefusedWrites(t *testing.T) {
	var out bytes.Buffer
	tr := newTraffic(emitter{&out})
	o := tr.observer()
	o.Request(lockclient.RequestEvent{Op: "acquire", Name: "hot", Outcome: "refused"})
	tr.set("hot", stage{wake: lockclient.WakeEvent})
	o.Request(lockclient.RequestEvent{Op: "take over", Name: "hot", Outcome: "refused"})
	o.Request(lockclient.RequestEvent{Op: "acquire", Name: "hot", Outcome: "ok"})
	o.Request(lockclient.RequestEvent{Op: "renew", Name: "hot", Outcome: "refused"})
	got := told(t, &out)
	if len(got) != 2 || !got[0].FirstLook || got[1].FirstLook {
		t.Errorf("told %+v, want the first look's and the take-over's refusal", got)
	}
}
