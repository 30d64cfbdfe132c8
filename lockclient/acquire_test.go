package lockclient

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
)

func TestAcquireAndReleaseAreOneRequestEach(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		w.release(w.acquire(c, "first")) // a client's first look reads, to learn the server's time
		w.server.Requests().Reset()
		for _, name := range []string{"absent", "first"} {
			w.release(w.acquire(c, name))
		}
		if got := w.server.Requests().Total(); got != 4 {
			t.Errorf("%d requests for two acquires and two releases: %v", got, w.server.Requests().Counts())
		}
	})
}

// Cases: H2, H5
func TestReleaseTwice(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		old := w.acquire(c, "orders")
		w.release(old)
		fresh := w.acquire(c, "orders")
		if fresh.FencingToken() <= old.FencingToken() {
			t.Errorf("token %d after %d", fresh.FencingToken(), old.FencingToken())
		}
		before := w.server.Requests().Total()
		wantErr(t, old.Release(w.ctx), ErrReleased)
		wantErr(t, old.Renew(w.ctx, nil), ErrReleased)
		if got := w.server.Requests().Total(); got != before {
			t.Errorf("%d requests for a dead handle", got-before)
		}
		if it := w.item("orders"); it.Released || it.Owner != fresh.owner {
			t.Errorf("the dead handle touched the new hold: %+v", it)
		}
		wantErr(t, old.Err(), ErrReleased)
		wantErr(t, context.Cause(old.Context()), ErrReleased)
		if old.Valid() || !fresh.Valid() {
			t.Error("validity is mixed up")
		}
	})
}

func TestContentionIsToldApart(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(func(o *Options) { o.Label = "host-a" }), w.client()
		l := w.acquire(a, "orders")
		_, err := b.TryAcquire(w.ctx, "orders")
		var held *HeldError
		if !errors.As(err, &held) || held.Label != "host-a" || held.Token != l.FencingToken() || held.Holder == "" || held.Since.IsZero() || held.Cause != nil {
			t.Errorf("TryAcquire: %v (%+v)", err, held)
		}
		start := time.Now()
		_, err = b.Acquire(w.ctx, "orders", func(o *AcquireOptions) { o.Wait = 3 * time.Second })
		wantErr(t, err, ErrHeld, ErrWaitElapsed)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an elapsed Wait is no deadline of the caller: %v", err)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Wait of 3s took %v", took)
		}
		ctx, cancel := context.WithTimeout(w.ctx, 2*time.Second)
		defer cancel()
		start = time.Now()
		_, err = b.Acquire(ctx, "orders")
		wantErr(t, err, ErrHeld, context.DeadlineExceeded)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("deadline of 2s took %v", took)
		}
		var e *Error
		if !errors.As(err, &e) || e.Op != "acquire" || e.Lock != "orders" || e.Table != testTable || e.Region == "" {
			t.Errorf("%+v", e)
		}
		// Cases: F6
		//
		// The text is for people: no service exception in it.
		for _, part := range []string{"host-a", "since", testTable, e.Region} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("text lacks %q: %s", part, err)
			}
		}
		if strings.Contains(err.Error(), "ConditionalCheckFailed") {
			t.Errorf("contention shown as an exception: %s", err)
		}
	})
}

func TestLockIsTakenOverAfterAWholeLeaseAndNotBefore(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		crash(a)
		start := time.Now()
		got := w.acquire(b, "orders")
		took := time.Since(start)
		if took < 10*time.Second || took > 12*time.Second {
			t.Errorf("takeover after %v, want a lease of 10s and a poll", took)
		}
		if got.FencingToken() <= l.FencingToken() {
			t.Errorf("token %d after %d", got.FencingToken(), l.FencingToken())
		}
		if l.Valid() {
			t.Error("two leases are valid")
		}
		wantErr(t, l.Err(), ErrLost)
	})
}

func TestBadNamesAndOptionsSendNothing(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		for _, name := range []string{"", "bad \xff", strings.Repeat("n", 2049)} {
			_, err := c.Acquire(w.ctx, name)
			wantErr(t, err, ErrInvalidName)
			_, err = c.TryAcquire(w.ctx, name)
			wantErr(t, err, ErrInvalidName)
		}
		for _, fn := range []func(*AcquireOptions){
			func(o *AcquireOptions) { o.LeaseDuration = 999 * time.Millisecond },
			func(o *AcquireOptions) { o.LeaseDuration = time.Hour + 1 },
			func(o *AcquireOptions) { o.LeaseDuration = time.Second + 1 },
			func(o *AcquireOptions) { o.Wait = -1 },
			func(o *AcquireOptions) { o.Data = make([]byte, DefaultMaxData+1) },
			func(o *AcquireOptions) { o.Label = strings.Repeat("l", 1025) },
			func(o *AcquireOptions) { o.ExpiringBefore = 10 * time.Second },
		} {
			_, err := c.Acquire(w.ctx, "orders", fn)
			wantErr(t, err, ErrInvalidOption)
		}
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		_, err := c.Acquire(ended, "orders")
		wantErr(t, err, context.Canceled)
		if n := w.server.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// Cases: L2
func TestNamesOfAnyCharactersAreLocks(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		for _, name := range []string{"= # : \" ' ; , space", "emoji 🔒", "nul \x00 x", "'; DROP TABLE locks; --", "#key = :key", strings.Repeat("n", 2048)} {
			l := w.acquire(c, name)
			if it := w.item(name); it == nil || it.Owner != l.owner {
				t.Errorf("%.20q: %+v", name, it)
			}
			w.release(l)
		}
	})
}

// Cases: L6
func TestOrdinaryItemIsRefusedAndNotTouched(t *testing.T) {
	bubble(t, func(w *world) {
		key := map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "user-1"}}
		item := map[string]types.AttributeValue{
			"key": key["key"], "email": &types.AttributeValueMemberS{Value: "x"},
			lockattr.IsReleased: &types.AttributeValueMemberS{Value: "1"}, lockattr.FencingToken: &types.AttributeValueMemberN{Value: "1"},
		}
		if err := w.server.PutRaw(testTable, item); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			c := w.client()
			_, err := c.Acquire(w.ctx, "user-1")
			wantErr(t, err, ErrNotALock)
			_, err = c.TryAcquire(w.ctx, "user-1")
			wantErr(t, err, ErrNotALock)
		}
		if got := w.server.Item(testTable, key); len(got) != len(item) {
			t.Errorf("the item was touched: %v", got)
		}
		item[lockattr.RecordVersionNumber] = &types.AttributeValueMemberN{Value: "1"}
		if err := w.server.PutRaw(testTable, item); err != nil {
			t.Fatal(err)
		}
		_, err := w.client().Acquire(w.ctx, "user-1")
		wantErr(t, err, ErrMalformed)
	})
}

// Cases: M5
func TestPausedLockIsRefusedAtOnceWithItsReason(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.release(w.acquire(a, "orders"))
		m := w.server.Item(testTable, a.layout.Key("orders"))
		m[lockattr.Paused] = &types.AttributeValueMemberS{Value: "maintenance until noon"}
		if err := w.server.PutRaw(testTable, m); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Client{a, w.client()} {
			_, err := c.Acquire(w.ctx, "orders")
			wantErr(t, err, ErrPaused)
			if !strings.Contains(err.Error(), "maintenance until noon") {
				t.Errorf("no reason in %q", err)
			}
		}
		delete(m, lockattr.Paused)
		if err := w.server.PutRaw(testTable, m); err != nil {
			t.Fatal(err)
		}
		w.release(w.acquire(a, "orders")) // what is known of the pause is not believed for ever
	})
}

// Cases: N3, N4, N5
func TestPermanentErrorsAreNamedAndNotRetried(t *testing.T) {
	for _, tc := range []struct {
		name  string
		table string
		fault error
		want  error
	}{
		{"no table", "nowhere", nil, ErrNoTable},
		{"access denied", testTable, &fakedynamo.APIError{Code: "AccessDeniedException", Message: "not authorized to perform dynamodb:UpdateItem"}, nil},
		{"schema", testTable, &fakedynamo.APIError{Code: "ValidationException", Message: "The provided key element does not match the schema"}, ErrSchema},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(w *world) {
				if tc.fault != nil {
					w.server.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault {
						return fakedynamo.Fault{Error: tc.fault}
					})
				}
				c, err := New(w.server.Client(), tc.table)
				if err != nil {
					t.Fatal(err)
				}
				_, err = c.Acquire(w.ctx, "orders")
				var e *Error
				if !errors.As(err, &e) || e.Table != tc.table || e.Region != "us-east-1" || e.Op != "acquire" {
					t.Errorf("%v", err)
				}
				if tc.want != nil {
					wantErr(t, err, tc.want)
				}
				if n := w.server.Requests().Total(); n != 1 {
					t.Errorf("%d requests", n)
				}
				for _, part := range []string{"acquire", tc.table, "us-east-1"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("text lacks %q: %s", part, err)
					}
				}
				if err := c.Close(w.ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestUnreachableTableEndsTheFirstLookButNotAWait(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		down := func(context.Context, *fakedynamo.Request) fakedynamo.Fault {
			return fakedynamo.Fault{DropRequest: true}
		}
		w.server.Intercept(down)
		start := time.Now()
		_, err := a.Acquire(w.ctx, "orders")
		if err == nil || errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "timed out") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took > firstLookTries*2500*time.Millisecond+3*time.Second {
			t.Errorf("gave up after %v", took)
		}
		// Bounded by the caller's context, whatever the table does.
		ctx, cancel := context.WithTimeout(w.ctx, 700*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = a.Acquire(ctx, "orders")
		wantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != 700*time.Millisecond {
			t.Errorf("hung for %v past the context", took)
		}

		w.server.Intercept(nil)
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(3 * time.Second)
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			return fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "InternalServerError", Status: 500}}
		})
		time.Sleep(5 * time.Second)
		if p.ended() {
			t.Fatalf("an outage ended the wait: %v", p.err)
		}
		w.server.Intercept(nil)
		w.release(l)
		p.mustHold(t)
	})
}

func TestNewTellsEverythingThatIsWrong(t *testing.T) {
	for name, fn := range map[string]func(*Options){
		"short lease": func(o *Options) { o.LeaseDuration = 999 * time.Millisecond },
		"long lease":  func(o *Options) { o.LeaseDuration = time.Hour + time.Second },
		"renew interval": func(o *Options) {
			o.RenewInterval = o.LeaseDuration
			o.LeaseDuration = 9 * time.Second
			o.RenewInterval = 3*time.Second + 1
		},
		"max lease":        func(o *Options) { o.MaxLease = 2 * time.Hour },
		"retention":        func(o *Options) { o.Retention = 29 * time.Minute },
		"fallback":         func(o *Options) { o.Fallback = -1 },
		"own attribute":    func(o *Options) { o.Schema.Partition = lockattr.IsReleased },
		"sort without key": func(o *Options) { o.Schema.SortValue = "x" },
		"label":            func(o *Options) { o.Label = strings.Repeat("l", 2000) },
		"data":             func(o *Options) { o.MaxData = 400 << 10 },
		"format":           func(o *Options) { o.LeaseFormat = 7 },
	} {
		if _, err := New(&telling{}, testTable, fn); !errors.Is(err, ErrInvalidOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := New(nil, "", func(o *Options) { o.LeaseDuration, o.Fallback = 1, -1 })
	for _, part := range []string{"DynamoDB client", "table name", "lease", "Fallback"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	c, err := New(&telling{}, testTable, func(o *Options) { o.AllowShortLease, o.LeaseDuration = true, 50*time.Millisecond })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A failure that uses up TryAcquire's requests is told, and never as somebody's hold.
func TestTryAcquireDoesNotTakeAFailureForAHold(t *testing.T) {
	bubble(t, func(w *world) {
		for _, f := range []fakedynamo.Fault{{DropResponse: true}, {Reset: true}, {TruncateBody: true, DropRequest: true}} {
			w.fault("GetItem", 1, f)
			l, err := w.client().TryAcquire(w.ctx, "never-held") // its first request is a read
			if l != nil || err == nil || errors.Is(err, ErrHeld) {
				t.Errorf("%v, %v", l, err)
			}
		}
	})
}
