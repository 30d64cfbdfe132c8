package lockclient

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
)

// Cases: D8, H1
func TestInspectTellsFactsAndCanFreeNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(func(o *Options) { o.Label = "host-a" }), w.client()
		info, err := b.Inspect(w.ctx, "orders")
		if err != nil || !info.Free || info.Name != "orders" || info.Token != 0 {
			t.Errorf("of a lock that nobody had: %+v, %v", info, err)
		}
		l := w.acquire(a, "orders", func(o *AcquireOptions) { o.Data = []byte("x") })
		info, err = b.Inspect(w.ctx, "orders")
		if err != nil || info.Free || info.Holder != l.owner || info.Label != "host-a" || info.Token != l.token ||
			info.Lease != 10*time.Second || info.Since.IsZero() || string(info.Data) != "x" || info.ObservedFor != 0 {
			t.Errorf("%+v, %v", info, err)
		}
		time.Sleep(time.Second)
		if info, _ = b.Inspect(w.ctx, "orders"); info.ObservedFor < time.Second || info.ObservedFor > 1100*time.Millisecond {
			t.Errorf("observed for %v", info.ObservedFor)
		}
		w.release(l)
		if info, _ = b.Inspect(w.ctx, "orders"); !info.Free || info.Token != l.token {
			t.Errorf("after the release: %+v", info)
		}
		kind := reflect.TypeFor[Info]()
		if kind.NumMethod()+reflect.PointerTo(kind).NumMethod() != 0 {
			t.Error("an Info can do something")
		}
		for i := range kind.NumField() {
			if strings.Contains(kind.Field(i).Name, "Expired") {
				t.Errorf("an Info gives a verdict: %s", kind.Field(i).Name)
			}
		}
	})
}

func TestInspectErrors(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.client()
		_, err := c.Inspect(w.ctx, "")
		wantErr(t, err, ErrInvalidName)
		if err := w.server.PutRaw(testTable, map[string]types.AttributeValue{"key": &types.AttributeValueMemberS{Value: "user"}}); err != nil {
			t.Fatal(err)
		}
		_, err = c.Inspect(w.ctx, "user")
		wantErr(t, err, ErrNotALock)
		w.fault("GetItem", 2, fakedynamo.Fault{Reset: true})
		if _, err = c.Inspect(w.ctx, "orders"); err != nil {
			t.Errorf("two broken connections: %v", err)
		}
		w.fault("GetItem", 9, fakedynamo.Fault{DropRequest: true})
		_, err = c.Inspect(w.ctx, "orders")
		wantErr(t, err, errRequestTimeout)
		w.server.Intercept(nil)
		_ = c.Close(w.ctx)
		_, err = c.Inspect(w.ctx, "orders")
		wantErr(t, err, ErrClosed)
	})
}

// Cases: A8
func TestCrashAfterTheWriteWasApplied(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(func(o *Options) { o.Label = "host-a" }), w.client()
		w.release(w.acquire(a, "warm"))
		w.fault("UpdateItem", 1, fakedynamo.Fault{DropResponse: true})
		ctx, kill := context.WithCancel(w.ctx)
		p := w.goAcquire(ctx, a, "orders")
		time.Sleep(10 * time.Millisecond)
		crash(a)
		kill()
		<-p.done
		crashed := time.Now()
		if p.lease != nil {
			t.Fatal("acquired without an answer")
		}
		second := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(5 * time.Second)
		info, err := b.Inspect(w.ctx, "orders")
		if err != nil || info.Free || info.Label != "host-a" || info.Since.IsZero() || info.ObservedFor < 4*time.Second {
			t.Errorf("%+v, %v", info, err)
		}
		second.mustHold(t)
		if took := second.at.Sub(crashed); took > 11600*time.Millisecond {
			t.Errorf("B has it after %v", took)
		}
	})
}

// Cases: D2
func TestDeadLeaderIsReplaced(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, onlooker := w.client(), w.client(w.watching), w.client()
		w.acquire(a, "leader")
		p := w.goAcquire(w.ctx, b, "leader")
		time.Sleep(25 * time.Second)
		crash(a)
		killed := time.Now()
		if _, err := onlooker.Inspect(w.ctx, "leader"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		// An onlooker is not told "held" for ever: the version stands still.
		if info, err := onlooker.Inspect(w.ctx, "leader"); err != nil || p.ended() == (info.ObservedFor >= 6*time.Second) {
			t.Errorf("%+v, %v", info, err)
		}
		p.mustHold(t)
		if took := p.at.Sub(killed); took > 11*time.Second {
			t.Errorf("another leads after %v", took)
		}
		crash(b)
		time.Sleep(time.Minute)
		if _, err := onlooker.Inspect(w.ctx, "leader"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if info, err := onlooker.Inspect(w.ctx, "leader"); err != nil || info.ObservedFor < 6*info.Lease {
			t.Errorf("of a leader that is dead and not replaced: %+v, %v", info, err)
		}
	})
}

// A pause outlives the retention, also when the holder releases right after it.
func TestPauseOfAHeldLock(t *testing.T) {
	for name, wait := range map[string]time.Duration{"just now": 0, "a while ago": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a := w.client()
				l := w.acquire(a, "orders")
				heir := w.goAcquire(w.ctx, a, "orders")
				time.Sleep(time.Second)
				m := w.server.Item(testTable, a.layout.Key("orders"))
				m[lockattr.Paused] = &types.AttributeValueMemberS{Value: "maintenance"}
				delete(m, lockattr.TTL)
				if err := w.server.PutRaw(testTable, m); err != nil {
					t.Fatal(err)
				}
				time.Sleep(wait)
				w.server.Requests().Reset()
				w.release(l) // tries to pass it on first
				// Hand-over, release, the TTL taken off, and at that instant the heir's own try.
				if n := w.requests("UpdateItem"); n > 4 {
					t.Errorf("%d writes to release a paused lock", n)
				}
				<-heir.done
				wantErr(t, heir.err, ErrPaused)
				if it := w.item("orders"); !it.Released || !it.Paused || !it.TTL.IsZero() {
					t.Errorf("%+v", it)
				}
			})
		})
	}
}
