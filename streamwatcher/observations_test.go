package streamwatcher

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

// renewal is the record of a renewal that left the version rvn.
func renewal(name, rvn string) types.Record {
	return record(types.OperationTypeModify, name, held(name, "before-"+rvn, 7), held(name, rvn, 7))
}

func TestObserved(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		s.live("other")
		if c, ok := s.w.Observed("a"); ok {
			t.Errorf("observed %+v", c)
		}
		s.write("A", renewal("a", "r1"))
		time.Sleep(2 * interval)
		first, ok := s.w.Observed("a")
		if !ok || first.RVN != "r1" || first.Token != 7 || !first.Held || first.Lease != 20*time.Second || first.Sequence == "" || first.Kind != lockevent.Unknown {
			t.Errorf("observed %+v, %v", first, ok)
		}
		if age := time.Since(first.SeenAt); age < interval/2 || age > 2*interval {
			t.Errorf("seen %v ago", age)
		}
		time.Sleep(time.Minute)
		s.write("A", release("a", "r2"))
		time.Sleep(2 * slideMost)
		if c, ok := s.w.Observed("a"); !ok || c.RVN != "r2" || c.Held || time.Since(c.SeenAt) > time.Minute {
			t.Errorf("observed %+v, %v", c, ok)
		}
		s.write("A", remove("a"))
		time.Sleep(2 * slideMost)
		if c, ok := s.w.Observed("a"); ok {
			t.Errorf("observed %+v of an item that is gone", c)
		}
	})
}

// Cases: R5, SF12
func TestObservedStaysOld(t *testing.T) {
	o := observations{limit: 10}
	at := time.Now()
	page := func(rvn, sequence string, after time.Duration) {
		rec := renewal("a", rvn)
		rec.Dynamodb.SequenceNumber = &sequence
		o.note(&rec, "a", at.Add(after))
	}
	page("r1", "9", 0)
	page("r2", "10", time.Second)
	page("r2", "10", time.Minute) // the same record once more
	page("r1", "9", time.Minute)  // and an older one
	page("r2", "11", time.Minute) // another change of the item than the lock's
	if c, ok := o.get("a"); !ok || c.RVN != "r2" || c.SeenAt != at.Add(time.Second) || c.Sequence != "11" {
		t.Errorf("observed %+v, %v", c, ok)
	}
}

func TestObservationsAreBounded(t *testing.T) {
	o := observations{limit: 100}
	at := time.Now()
	note := func(name, rvn string) {
		rec := renewal(name, rvn)
		o.note(&rec, name, at)
	}
	for i := range 100 {
		note(fmt.Sprint(i), "r")
	}
	note("0", "again") // now 1 is the one that changed longest ago
	for i := range 50 {
		note(fmt.Sprint("new", i), "r")
	}
	for name, want := range map[string]bool{"0": true, "1": false, "50": false, "51": true, "99": true, "new0": true, "new49": true} {
		if _, ok := o.get(name); ok != want {
			t.Errorf("%s: %v", name, ok)
		}
	}
	for i := range 1000 {
		note(fmt.Sprint(i%300), fmt.Sprint("r", i))
		if i%7 == 0 {
			gone := remove(fmt.Sprint(i % 300))
			o.note(&gone, fmt.Sprint(i%300), at)
		}
	}
	if len(o.index) > 100 || len(o.slots) > 101 {
		t.Errorf("%d names in %d slots", len(o.index), len(o.slots))
	}
	seen := 0
	for i := o.slots[0].older; i != 0; i = o.slots[i].older {
		seen++
	}
	if seen != len(o.index) {
		t.Errorf("%d in order of use, %d known", seen, len(o.index))
	}
	note(strings.Repeat("n", longestName+1), "r")
	note("long", strings.Repeat("r", longestVersion+1))
	if _, ok := o.get("long"); ok || len(o.index) > 100 {
		t.Error("a version without end is remembered")
	}
	o.forget()
	if _, ok := o.get("299"); ok {
		t.Error("not forgotten")
	}
	none := observations{}
	rec := renewal("a", "r")
	if none.note(&rec, "a", at); len(none.index) > 0 {
		t.Error("remembered without a limit")
	}
}

// A version whose token or lease nobody can read is no observation.
func TestObservedBadInput(t *testing.T) {
	for name, bad := range map[string]attributes{
		"token": {"fencingToken": number(-1)}, "lease": {"leaseDuration": text("soon")}, "no lease": {"leaseDuration": number(1)},
		"version": {"recordVersionNumber": number(1)}, "empty": {"recordVersionNumber": text("")},
	} {
		t.Run(name, func(t *testing.T) {
			o := observations{limit: 10}
			rec := renewal("a", "r1")
			o.note(&rec, "a", time.Now())
			rec = renewal("a", "r2")
			for k, v := range bad {
				rec.Dynamodb.NewImage[k] = v
			}
			o.note(&rec, "a", time.Now())
			if c, ok := o.get("a"); ok {
				t.Errorf("observed %+v", c)
			}
		})
	}
}

// unwatched is a watcher that has seen the lock of the record before.
func unwatched(t testing.TB) (*Watcher, *types.Record) {
	f := one()
	w, err := New(f, f, "locks")
	if err != nil {
		t.Fatal(err)
	}
	rec := renewal("a", "r1")
	rec.Dynamodb.SequenceNumber = ptr("100000000000000000001")
	w.take(&rec, time.Now())
	return w, &rec
}

// A renewal that nobody waits for costs no memory.
func TestUnwatchedRenewalAllocatesNothing(t *testing.T) {
	w, rec := unwatched(t)
	at := time.Now()
	if n := testing.AllocsPerRun(1000, func() { w.take(rec, at) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
