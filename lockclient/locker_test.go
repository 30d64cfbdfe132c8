package lockclient

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestLockerBindsOptions: a Locker's acquires have the options it was made with, and its
// holds are the client's leases.
func TestLockerBindsOptions(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		k := c.Locker(func(o *AcquireOptions) { o.Label, o.LeaseDuration, o.Wait = "job-7", 3*time.Second, time.Minute })
		h, err := k.Acquire(w.ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		l, ok := LeaseFromContext(h.Context())
		if !ok || l.FencingToken() != h.FencingToken() || h.Name() != "a" || !h.Valid() {
			t.Errorf("hold %v with lease %v", h, l)
		}
		if it := w.item("a"); it == nil || it.Label != "job-7" || it.Lease != 3*time.Second {
			t.Errorf("item %+v has not the bound options", it)
		}
		if h2, err := k.TryAcquire(w.ctx, "a"); h2 != nil || !errors.Is(err, ErrHeld) {
			t.Errorf("TryAcquire of a held lock: %v, %v", h2, err)
		}
		start := time.Now()
		h2, err := k.Acquire(w.ctx, "a")
		if wantErr(t, err, ErrHeld, ErrWaitElapsed); h2 != nil || time.Since(start) != time.Minute {
			t.Errorf("a bounded wait: %v after %s", h2, time.Since(start))
		}
		if err := h.Release(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestLockerDoHandsTheHold: fn gets the hold whose lease is in its context.
func TestLockerDoHandsTheHold(t *testing.T) {
	bubble(t, func(w *world) {
		k := w.client().Locker()
		boom := errors.New("boom")
		var h Hold
		err := k.Do(w.ctx, "a", func(ctx context.Context, given Hold) error {
			h = given
			if l, ok := LeaseFromContext(ctx); !ok || l.FencingToken() != h.FencingToken() || !h.Valid() {
				t.Errorf("hold %v, lease %v", h, l)
			}
			return boom
		})
		if wantErr(t, err, boom); h == nil || !errors.Is(h.Err(), ErrReleased) {
			t.Errorf("hold %v after Do", h)
		}
		if err := k.Close(w.ctx); err != nil {
			t.Error(err)
		}
		h, err = k.Acquire(w.ctx, "a")
		if wantErr(t, err, ErrClosed); h != nil {
			t.Error("a hold with an error")
		}
	})
}
