package lockclient

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockitem"
	"github.com/lockstream/lockstream/lockevent"
)

// Cases: F4, F2
func TestContextThatEndsAsTheLockIsWon(t *testing.T) {
	bubble(t, func(w *world) {
		for name, acquire := range map[string]func(context.Context, *Client) (*Lease, error){
			"orders": func(ctx context.Context, c *Client) (*Lease, error) { return c.Acquire(ctx, "orders") },
			"mails":  func(ctx context.Context, c *Client) (*Lease, error) { return c.TryAcquire(ctx, "mails") },
		} {
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			c := w.client(func(o *Options) {
				o.Observer.Request = func(e RequestEvent) {
					if e.Op == "acquire" && e.Outcome == "ok" {
						cancel() // the answer is here, the caller has gone
					}
				}
			})
			l, err := acquire(ctx, c)
			if l != nil || err == nil {
				t.Errorf("%s: %v, %v", name, l, err)
			}
			wantErr(t, err, context.Canceled)
			time.Sleep(time.Second)
			if it := w.item(name); it == nil || !it.Released {
				t.Errorf("a lock was left behind: %+v", it)
			}
		}
	})
}

// A release that had been applied is not reported as a loss because others acquired the
// lock before the retry.
func TestReleaseWithALostAnswerAndANewHolder(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		w.fault("UpdateItem", 1, fakedynamo.Fault{DropResponse: true})
		if err := l.Release(w.ctx); err != nil {
			t.Errorf("%v", err)
		}
		if !p.ended() || !p.mustHold(t).Valid() {
			t.Error("B was not faster: the test shows nothing")
		}
	})
}

// With the default lease a release has time for several requests, and so has a clean-up.
func TestOneLostRequestDoesNotUseUpAReleasesTime(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client(func(o *Options) { o.LeaseDuration = DefaultLease })
		l := w.acquire(a, "orders")
		w.fault("UpdateItem", 2, fakedynamo.Fault{DropRequest: true})
		w.release(l)
		if !w.item("orders").Released {
			t.Error("not released")
		}
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		w.fault("UpdateItem", 3, fakedynamo.Fault{DropResponse: true}) // the acquire and two of its clean-up
		if _, err := a.Acquire(ctx, "mails"); err == nil {
			t.Error("acquired without an answer")
		}
		time.Sleep(DefaultRelease)
		if it := w.item("mails"); it == nil || !it.Released {
			t.Errorf("a lock was left behind: %+v", it)
		}
	})
}

// No event can make a live lease look dead: not by a wrong lease, nor by a wrong time.
func TestEventsThatLieAboutALiveVersion(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		l := w.acquire(a, "orders")
		ctx, cancel := context.WithCancel(w.ctx)
		p := w.goAcquire(ctx, b, "orders")
		time.Sleep(4 * time.Second)
		for _, seenAt := range []time.Time{{}, time.Now().Add(-time.Hour), time.Now()} {
			for _, lease := range []time.Duration{0, time.Millisecond, time.Hour} {
				<-l.gate
				w.events.mu.Lock()
				for box := range w.events.watches {
					box.put(lockevent.Change{
						Name: "orders", Kind: lockevent.Renewed, RVN: l.rvn, Token: l.token, Lease: lease, Held: true, SeenAt: seenAt,
					})
				}
				w.events.mu.Unlock()
				l.gate <- struct{}{}
				synctest.Wait() // it is believed, and not yet looked into
				if _, err := b.TryAcquire(w.ctx, "orders"); err == nil || !l.Valid() || p.ended() {
					t.Fatalf("a live lease was taken over: %v, %v", err, l.Err())
				}
			}
		}
		cancel()
		<-p.done
		if l.Err() != nil {
			t.Errorf("%v", l.Err())
		}
	})
}

// A skewed signing clock that happens twice in a long wait does not end it.
func TestSigningClockThatIsSetTwiceInAWait(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		for range 3 {
			time.Sleep(5 * time.Second)
			w.fault("GetItem", 1, fakedynamo.Fault{Error: &fakedynamo.APIError{Code: "RequestTimeTooSkewed"}})
		}
		time.Sleep(5 * time.Second)
		if p.ended() {
			t.Fatalf("%v", p.err)
		}
		w.release(l)
		p.mustHold(t)
	})
}

// The narrow front gives the server's time too.
func TestServerTimeWithoutTheSDKsMiddleware(t *testing.T) {
	bubble(t, func(w *world) {
		c, err := New(w.server.API(), testTable)
		if err != nil {
			t.Fatal(err)
		}
		w.open = append(w.open, c)
		l := w.acquire(c, "orders")
		if got := time.UnixMicro(l.FencingToken()); got.Before(w.server.Now().Add(-2*time.Second)) || got.After(w.server.Now()) {
			t.Errorf("token is of %v, the server's time is %v", got, w.server.Now())
		}
		if w.item("orders").LeaseUntil.IsZero() {
			t.Error("leaseUntil is left out")
		}
	})
}

// Refusals carry the server's time as well, through either front.
func TestServerTimeOfARefusal(t *testing.T) {
	bubble(t, func(w *world) {
		w.acquire(w.client(), "orders")
		for name, db := range map[string]DynamoDBAPI{"sdk": w.server.Client(), "narrow": w.server.API()} {
			c, err := New(db, testTable)
			if err != nil {
				t.Fatal(err)
			}
			w.open = append(w.open, c)
			e := lockitem.AcquireUnknown(c.layout, lockitem.Grant{Owner: "x#1", RVN: newRVN(), Token: 1, Lease: time.Second})
			if a := c.update(w.ctx, "acquire", "orders", c.compose(), time.Second, e); a.fail != failRefused {
				t.Errorf("%s: %d %v", name, a.fail, a.err)
			}
			if now, known, _ := c.server.now(time.Now()); !known || now.Before(w.server.Now().Add(-2*time.Second)) {
				t.Errorf("%s: %v, known %v", name, now, known)
			}
		}
	})
}
