package lockclient

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
)

func (w *world) list(c *Client, prefix string) map[string]Info {
	w.t.Helper()
	found := map[string]Info{}
	for info, err := range c.List(w.ctx, prefix) {
		if err != nil {
			w.t.Fatalf("%q: %v", info.Name, err)
		}
		if _, twice := found[info.Name]; twice {
			w.t.Errorf("%q twice", info.Name)
		}
		found[info.Name] = info
	}
	return found
}

// stored writes a released lock behind everybody's back.
func (w *world) stored(name string, token int64) {
	w.put(name, map[string]types.AttributeValue{
		lockattr.RecordVersionNumber: &types.AttributeValueMemberS{Value: newRVN()},
		lockattr.IsReleased:          &types.AttributeValueMemberS{Value: "1"},
		lockattr.FencingToken:        &types.AttributeValueMemberN{Value: fmt.Sprint(token)},
	})
}

func (w *world) put(name string, m map[string]types.AttributeValue) {
	m[lockattr.Key] = &types.AttributeValueMemberS{Value: name}
	if err := w.server.PutRaw(testTable, m); err != nil {
		w.t.Fatal(err)
	}
}

func TestListPagesThroughAll(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		for i := range 2500 {
			w.stored(fmt.Sprintf("bulk/%d", i), 1)
		}
		l := w.acquire(a, "orders/1")
		w.acquire(a, "orders/2")
		if err := a.Pause(w.ctx, "orders/3", "x"); err != nil {
			t.Fatal(err)
		}
		w.put("ordinary", map[string]types.AttributeValue{"email": &types.AttributeValueMemberS{Value: "x"}})
		w.server.Requests().Reset()
		if all := w.list(a, ""); len(all) != 2503 || w.requests("Scan") != 3 {
			t.Errorf("%d locks in %d requests", len(all), w.requests("Scan"))
		}
		found := w.list(a, "orders/")
		if len(found) != 3 || !found["orders/3"].Paused || found["orders/1"].Free || found["orders/1"].Token != l.FencingToken() {
			t.Errorf("%+v", found)
		}
		if len(w.list(a, "none")) != 0 {
			t.Error("found something")
		}
		w.server.Requests().Reset()
		for range a.List(w.ctx, "bulk/") {
			break // ends the list
		}
		if n := w.requests("Scan"); n != 1 {
			t.Errorf("%d requests", n)
		}
		if a.Stats().Names > 10 {
			t.Errorf("%d names are remembered", a.Stats().Names)
		}
	})
}

// What List shows is good for ForceRelease, and it knows how long a version was seen.
func TestListThenForceRelease(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(func(o *Options) { o.KeyPrefix = "p/" }), w.client(func(o *Options) { o.KeyPrefix = "p/" })
		w.acquire(a, "orders")
		w.acquire(w.client(), "stock")
		crash(a)
		info, ok := w.list(b, "")["orders"]
		if !ok || info.ObservedFor != 0 {
			t.Fatalf("%+v", info)
		}
		w.inspect(b, "orders")
		time.Sleep(5 * time.Second)
		found := w.list(b, "ord")
		if info = found["orders"]; len(found) != 1 || info.ObservedFor < 5*time.Second {
			t.Errorf("%+v", found)
		}
		if err := b.ForceRelease(w.ctx, info); err != nil {
			t.Error(err)
		}
		if found := w.list(b, "ord"); !found["orders"].Free {
			t.Errorf("%+v", found)
		}
	})
}

func TestListGoesOnBehindMalformedItemsAndFaults(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.stored("a", 1)
		w.stored("c", 1)
		w.put("b", map[string]types.AttributeValue{lockattr.RecordVersionNumber: &types.AttributeValueMemberN{Value: "1"}})
		w.fault("Scan", 2, fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "ThrottlingException"}})
		good, bad := 0, 0
		for info, err := range a.List(w.ctx, "") {
			if err == nil {
				good++
				continue
			}
			bad++
			wantErr(t, err, ErrMalformed)
			if info.Name != "b" {
				t.Errorf("%+v", info)
			}
		}
		if good != 2 || bad != 1 {
			t.Errorf("%d good, %d bad", good, bad)
		}
		w.fault("Scan", -1, fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "AccessDeniedException"}})
		n := 0
		for _, err := range a.List(w.ctx, "") {
			if n++; err == nil {
				t.Error("no error")
			}
		}
		if n != 1 {
			t.Errorf("%d", n)
		}
		w.server.Intercept(nil)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		for _, err := range a.List(ctx, "") {
			wantErr(t, err, context.Canceled)
		}
		for range a.List(w.ctx, "") {
			if err := a.Close(w.ctx); err != nil { // from within the loop
				t.Error(err)
			}
		}
		for _, err := range a.List(w.ctx, "") {
			wantErr(t, err, ErrClosed)
		}
	})
}

// A restored table: every later token is above the floor, and a holder that the table shows
// keeps others out for its lease but is fenced.
func TestRaiseFloor(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		w.stored("stock", 7)
		w.stored("newer", 1<<52+5)
		w.put("alien", map[string]types.AttributeValue{
			lockattr.RecordVersionNumber: &types.AttributeValueMemberS{Value: "R"},
			lockattr.IsReleased:          &types.AttributeValueMemberS{Value: "1"},
		})
		if err := b.Pause(w.ctx, "paused", "x"); err != nil {
			t.Fatal(err)
		}
		const floor = 1 << 52
		w.fault("UpdateItem", 2, fakedynamo.Fault{AfterApply: true, Reset: true})
		if n, err := b.RaiseFloor(w.ctx, "", floor); err != nil || n != 4 {
			t.Errorf("%d, %v", n, err)
		}
		if n, err := b.RaiseFloor(w.ctx, "", floor); err != nil || n != 0 {
			t.Errorf("a second time: %d, %v", n, err)
		}
		if it := w.item("newer"); it.Token != 1<<52+5 {
			t.Errorf("lowered: %+v", it)
		}
		if it := w.item("paused"); !it.Paused || !it.TTL.IsZero() || it.Token != floor {
			t.Errorf("%+v", it)
		}
		wantErr(t, l.Transact(w.ctx, add("row")), ErrLost)
		start := time.Now()
		for _, name := range []string{"stock", "newer", "alien", "orders"} {
			if got := w.acquire(b, name); got.FencingToken() <= floor {
				t.Errorf("%s: token %d", name, got.FencingToken())
			}
		}
		if took := time.Since(start); took < 9*time.Second {
			t.Errorf("the holder's lock was taken after %v", took)
		}
		for _, bad := range []int64{0, -1, 1 << 53} {
			_, err := b.RaiseFloor(w.ctx, "", bad)
			wantErr(t, err, ErrInvalidOption)
		}
	})
}
