package lockclient

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

func TestPauseLetsNobodyAcquire(t *testing.T) {
	for _, state := range []string{"absent", "released", "held"} {
		t.Run(state, func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b := w.client(), w.client()
				var l *Lease
				if state != "absent" {
					l = w.acquire(a, "orders")
				}
				if state == "released" {
					w.release(l)
				}
				if err := b.Pause(w.ctx, "orders", "maintenance"); err != nil {
					t.Fatal(err)
				}
				if it := w.item("orders"); !it.Paused || it.PauseNote != "maintenance" || !it.TTL.IsZero() || it.Released != (state != "held") {
					t.Errorf("%+v", it)
				}
				if state == "held" {
					time.Sleep(time.Minute)
					if l.Err() != nil || !w.item("orders").TTL.IsZero() {
						t.Errorf("the holder: %v, %+v", l.Err(), w.item("orders"))
					}
					w.release(l)
				}
				for _, c := range []*Client{a, b} {
					_, err := c.TryAcquire(w.ctx, "orders")
					wantErr(t, err, ErrPaused)
					if !strings.Contains(err.Error(), "maintenance") {
						t.Errorf("%v", err)
					}
				}
				if it := w.item("orders"); !it.Released || !it.TTL.IsZero() {
					t.Errorf("%+v", it)
				}
				if err := b.Resume(w.ctx, "orders"); err != nil {
					t.Fatal(err)
				}
				if it := w.item("orders"); it.Paused || it.TTL.IsZero() {
					t.Errorf("resumed: %+v", it)
				}
				floor := w.item("orders").Token
				if got := w.acquire(a, "orders"); got.FencingToken() <= floor {
					t.Errorf("token %d after %d", got.FencingToken(), floor)
				}
			})
		})
	}
}

// A pause of a held lock restarts what contenders measure, and is over for the holder too.
func TestResumeOfAHeldLockGivesItsTTLBack(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		for range 2 {
			if err := b.Pause(w.ctx, "orders", "x"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		for range 2 {
			if err := b.Resume(w.ctx, "orders"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		if it := w.item("orders"); it.Paused || it.TTL.IsZero() || l.Err() != nil {
			t.Errorf("%+v, %v", it, l.Err())
		}
		if err := b.Resume(w.ctx, "never"); err != nil || w.item("never") != nil {
			t.Errorf("of a lock that is not there: %v", err)
		}
		wantErr(t, b.Pause(w.ctx, "", "x"), ErrInvalidName)
	})
}

// An answer that is lost is settled; a renewal in between makes it try again.
func TestPauseWithFaults(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(everyMs(6*time.Millisecond)), w.client()
		l := w.acquire(a, "orders")
		refused := 0
		b.opt.Observer.Request = func(e RequestEvent) {
			if e.Outcome == "refused" {
				refused++
			}
		}
		for i := range 20 {
			if i%2 == 0 {
				w.fault("UpdateItem", 1, fakedynamo.Fault{AfterApply: true, Reset: true})
			}
			if err := b.Pause(w.ctx, "orders", string(rune('a'+i))); err != nil {
				t.Fatal(err)
			}
		}
		if it := w.item("orders"); it.PauseNote != "t" || l.Err() != nil {
			t.Errorf("%+v, %v", it, l.Err())
		}
		if refused == 0 {
			t.Error("no renewal came in between: the test shows nothing")
		}
	})
}
