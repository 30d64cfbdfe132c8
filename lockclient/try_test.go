package lockclient

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

// Cases: D3, D5
//
// TryAcquire never waits, and takes what this client knows to be dead.
func TestTryAcquireTakesWhatIsKnownToBeDead(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		w.acquire(a, "orders")
		crash(a)
		_, err := b.TryAcquire(w.ctx, "orders")
		wantErr(t, err, ErrHeld)
		time.Sleep(9 * time.Second)
		_, err = b.TryAcquire(w.ctx, "orders")
		wantErr(t, err, ErrHeld)
		time.Sleep(time.Second + 100*time.Millisecond)
		w.server.Requests().Reset()
		if _, err = b.TryAcquire(w.ctx, "orders"); err != nil {
			t.Fatal(err)
		}
		if n := w.server.Requests().Total(); n != 1 {
			t.Errorf("%d requests to take a lock that is known to be dead", n)
		}
	})
}

func TestTryAcquireSendsAtMostTwoRequests(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		for range 3 {
			w.server.Requests().Reset()
			_, err := b.TryAcquire(w.ctx, "orders")
			wantErr(t, err, ErrHeld)
			if n := w.server.Requests().Total(); n > 2 {
				t.Errorf("%d requests", n)
			}
		}
		w.server.Requests().Reset()
		_, err := a.TryAcquire(w.ctx, "orders")
		wantErr(t, err, ErrHeld)
		if n := w.server.Requests().Total(); n != 0 {
			t.Errorf("%d requests for a lock that this client holds", n)
		}
		w.release(l)
		if _, err := b.TryAcquire(w.ctx, "orders"); err != nil {
			t.Error(err)
		}
	})
}

// A TryAcquire whose answer is lost settles with its second request.
func TestTryAcquireSettlesWithinItsTwoRequests(t *testing.T) {
	bubble(t, func(w *world) {
		var recovered atomic.Int64
		a := w.client(func(o *Options) { o.Observer.Recovered = func(string, string) { recovered.Add(1) } })
		w.release(w.acquire(a, "warm"))
		for _, f := range []fakedynamo.Fault{{AfterApply: true, Reset: true}, {DropResponse: true}, {TruncateBody: true}} {
			w.server.Requests().Reset()
			w.fault("UpdateItem", 1, f)
			l, err := a.TryAcquire(w.ctx, "orders")
			if err != nil {
				t.Fatal(err)
			}
			if n := w.server.Requests().Total(); n != 2 {
				t.Errorf("%d requests", n)
			}
			w.release(l)
		}
		if recovered.Load() != 3 {
			t.Errorf("recovered %d", recovered.Load())
		}
	})
}
