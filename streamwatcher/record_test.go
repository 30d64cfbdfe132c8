package streamwatcher

import (
	"errors"
	"fmt"
	"testing"
	"time"

	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/lockevent"
)

// Cases: R6, SF13
func TestReadRecord(t *testing.T) {
	const (
		insert, modify, remove = types.OperationTypeInsert, types.OperationTypeModify, types.OperationTypeRemove
		hint                   = lockevent.Unknown
	)
	foreign := attributes{"key": text("a"), "color": text("blue")}
	wrong := held("a", "r", 1)
	wrong["recordVersionNumber"] = number(7)
	list := held("a", "r", 1)
	list["isReleased"] = &types.AttributeValueMemberL{}
	stale := held("a", "r2", 7) // a foreign client renewed and left the operation behind
	stale["lockOp"] = text("release")
	reaped := free("a", "r2", 7)
	reaped["lockOp"] = text("reap")
	for name, test := range map[string]struct {
		event         types.OperationType
		before, after attributes
		verdict       verdict
		want          lockevent.Change
	}{
		"acquired":        {insert, nil, held("a", "r", 1), lockRecord, lockevent.Change{Kind: lockevent.Acquired, RVN: "r", Token: 1, Held: true, Lease: 20 * time.Second}},
		"acquired again":  {modify, free("a", "q", 1), held("a", "r", 2), lockRecord, lockevent.Change{Kind: lockevent.Acquired, RVN: "r", Token: 2, Held: true, Lease: 20 * time.Second}},
		"renewed":         {modify, held("a", "r1", 7), stale, lockRecord, lockevent.Change{Kind: lockevent.Renewed, RVN: "r2", Token: 7, Held: true, Lease: 20 * time.Second}},
		"handed over":     {modify, held("a", "r1", 7), held("a", "r2", 8), lockRecord, lockevent.Change{Kind: lockevent.HandedOver, RVN: "r2", Token: 8, Held: true, Lease: 20 * time.Second}},
		"taken over":      {modify, held("a", "r1", 7), held("a", "r2", 99), lockRecord, lockevent.Change{Kind: lockevent.TakenOver, RVN: "r2", Token: 99, Held: true, Lease: 20 * time.Second}},
		"released":        {modify, held("a", "r1", 7), free("a", "r2", 7), lockRecord, lockevent.Change{Kind: lockevent.Released, RVN: "r2", Token: 7, Lease: 20 * time.Second}},
		"reaped":          {modify, held("a", "r1", 7), reaped, lockRecord, lockevent.Change{Kind: lockevent.Reaped, RVN: "r2", Token: 7, Lease: 20 * time.Second}},
		"deleted":         {remove, free("a", "r1", 7), nil, lockRecord, lockevent.Change{Kind: lockevent.Deleted, Token: 7}},
		"no longer lock":  {modify, free("a", "r1", 7), foreign, lockRecord, lockevent.Change{Kind: lockevent.Deleted, Token: 7}},
		"keys only":       {modify, nil, nil, hintRecord, lockevent.Change{Kind: hint}},
		"keys only gone":  {remove, nil, nil, hintRecord, lockevent.Change{Kind: hint}},
		"new image only":  {modify, nil, held("a", "r", 1), hintRecord, lockevent.Change{Kind: hint}},
		"old image only":  {modify, held("a", "r", 1), nil, hintRecord, lockevent.Change{Kind: hint}},
		"wrong type":      {insert, nil, wrong, hintRecord, lockevent.Change{Kind: hint}},
		"wrong type then": {modify, wrong, held("a", "r", 1), hintRecord, lockevent.Change{Kind: hint}},
		"a list":          {insert, nil, list, hintRecord, lockevent.Change{Kind: hint}},
		"unknown event":   {"REPLACE", held("a", "r", 1), held("a", "r", 1), hintRecord, lockevent.Change{Kind: hint}},
		"foreign":         {modify, foreign, foreign, foreignRecord, lockevent.Change{}},
		"foreign gone":    {remove, foreign, nil, foreignRecord, lockevent.Change{}},
	} {
		t.Run(name, func(t *testing.T) {
			rec := record(test.event, "a", test.before, test.after)
			rec.Dynamodb.SequenceNumber = ptr("42")
			at := time.Now()
			got, verdict := readRecord(&rec, "a", at)
			test.want.Name, test.want.Sequence, test.want.SeenAt = "a", "42", at
			if verdict != test.verdict || got != test.want {
				t.Errorf("got %+v, %v; want %+v, %v", got, verdict, test.want, test.verdict)
			}
		})
	}
}

// Records that are none, or not what they should be, stop nothing.
func TestBadRecords(t *testing.T) {
	bubble(t, one, func(t *testing.T, s *stand) {
		wt := s.live("a")
		s.edit(func() {
			a := s.find("A")
			a.records = append(a.records, types.Record{}, types.Record{Dynamodb: &types.StreamRecord{}},
				types.Record{Dynamodb: &types.StreamRecord{Keys: attributes{"key": number(1)}}},
				types.Record{Dynamodb: &types.StreamRecord{Keys: keys("a")}})
		})
		if c := s.next(wt, 2*interval); c.Kind != lockevent.Unknown || c.Held || c.RVN != "" {
			t.Errorf("got %+v", c)
		}
		s.write("A", record(types.OperationTypeModify, "a", keys("a"), keys("a")))
		s.silent(wt, time.Second)
		s.write("A", release("a", "r1"))
		s.next(wt, 2*interval)
		if st := s.w.Stats(); st.Hints != 1 || st.Foreign != 1 || st.Records != 6 || st.Changes != 2 {
			t.Errorf("stats %+v", st)
		}
	})
}

// The key is read in place; the answer must be that of the one definition.
func TestLockName(t *testing.T) {
	for _, layout := range []func(*Options){
		func(*Options) {},
		func(o *Options) { o.Schema.Partition, o.KeyPrefix = "pk", "lock/" },
		func(o *Options) {
			o.Schema.Partition, o.Schema.Sort, o.Schema.SortValue, o.KeyPrefix = "pk", "sk", "lock", "x"
		},
	} {
		w, err := New(one(), one(), "t", layout)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []attributes{
			nil,
			{},
			keys("a"), keys(""),
			{"key": number(1)},
			{"pk": text("lock/a")},
			{"pk": text("lock/")},
			{"pk": text("a")},
			{"pk": text("xa"), "sk": text("lock")},
			{"pk": text("xa"), "sk": text("other")},
			{"pk": text("xa"), "sk": number(1)},
			{"pk": text("x"), "sk": text("lock")},
			{"pk": text("xa")},
		} {
			converted := make(map[string]dbtypes.AttributeValue)
			for k, v := range key {
				converted[k] = convert(v)
			}
			want, wantOK := w.layout.Name(converted)
			rec := types.Record{Dynamodb: &types.StreamRecord{Keys: key}}
			got, ok := w.lockName(&rec)
			if ok != wantOK || ok && got != want {
				t.Errorf("%v: got %q, %v; want %q, %v", key, got, ok, want, wantOK)
			}
		}
	}
}

// A record that nobody waits for costs the look at its key.
func TestUnwatchedRecordAllocatesNothing(t *testing.T) {
	w, err := New(one(), one(), "t", func(o *Options) { o.KeyPrefix = "lock/" })
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		w.hub.add(&watch{hub: &w.hub, name: fmt.Sprint(i), c: make(chan struct{}, 1)})
	}
	rec := record(types.OperationTypeModify, "lock/nobody", held("a", "r1", 1), held("a", "r2", 1))
	now := time.Now()
	if n := testing.AllocsPerRun(1000, func() { w.take(&rec, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() { readRecord(&rec, "a", now) }); n == 0 {
		t.Error("the counter counts nothing")
	}
}

func BenchmarkUnwatchedRecord(b *testing.B) {
	w, err := New(one(), one(), "t")
	if err != nil {
		b.Fatal(err)
	}
	rec := record(types.OperationTypeModify, "nobody", held("a", "r1", 1), held("a", "r2", 1))
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		w.take(&rec, now)
	}
}

func TestNew(t *testing.T) {
	f := one()
	if _, err := New(f, f, "locks"); err != nil {
		t.Errorf("defaults: %v", err)
	}
	if _, err := New(nil, f, "locks"); err == nil {
		t.Error("nil table client: no error")
	}
	if _, err := New(f, f, ""); err == nil {
		t.Error("no table: no error")
	}
	for name, broken := range map[string]func(*Options){
		"interval":  func(o *Options) { o.PollInterval = 9 * time.Millisecond },
		"interval+": func(o *Options) { o.PollInterval = 6 * time.Second },
		"idle":      func(o *Options) { o.IdleAfter = -1 },
		"call":      func(o *Options) { o.CallTimeout = -1 },
		"list":      func(o *Options) { o.ListTimeout = -1 },
		"relist":    func(o *Options) { o.RelistInterval = -1 },
		"retry":     func(o *Options) { o.DegradedRetry = -1 },
		"rate":      func(o *Options) { o.ResyncRate = -1 },
		"partition": func(o *Options) { o.Schema.Partition = "isReleased" },
		"sort":      func(o *Options) { o.Schema.Sort = "sk" },
	} {
		if _, err := New(f, f, "locks", broken); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if len(f.calls) != 0 {
		t.Errorf("New sent %v", f.calls)
	}
}

func TestClassify(t *testing.T) {
	for code, want := range map[string]fault{
		"ThrottlingException": faultThrottle, "LimitExceededException": faultThrottle,
		"ProvisionedThroughputExceededException": faultThrottle, "BandwidthThrottled": faultThrottle,
		"ExpiredIteratorException": faultExpired, "TrimmedDataAccessException": faultTrimmed,
		"ResourceNotFoundException": faultGone, "AccessDeniedException": faultAccess,
		"ValidationException": faultUnsupported, "InternalServerError": faultTransient,
		"ExpiredTokenException": faultTransient,
	} {
		if got := classify(fmt.Errorf("wrapped: %w", apiError(code))); got != want {
			t.Errorf("%s: got %v, want %v", code, got, want)
		}
	}
	for _, modelled := range []struct {
		err  error
		want fault
	}{
		{&types.ExpiredIteratorException{}, faultExpired},
		{&types.TrimmedDataAccessException{}, faultTrimmed},
		{&types.ResourceNotFoundException{}, faultGone},
		{&types.LimitExceededException{}, faultThrottle},
		{&types.InternalServerError{}, faultTransient},
		{errors.New("connection reset"), faultTransient},
	} {
		if got := classify(modelled.err); got != modelled.want {
			t.Errorf("%T: got %v, want %v", modelled.err, got, modelled.want)
		}
	}
}
