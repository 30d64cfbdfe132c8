package lockclient

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/lockevent"
)

// Faults that once got through, each with the interleaving that showed it.

func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// edit changes an item as a foreign writer would.
func (w *world) edit(name string, fn func(map[string]types.AttributeValue)) {
	w.t.Helper()
	m := w.server.Item(testTable, map[string]types.AttributeValue{lockattr.Key: text(name)})
	fn(m)
	if err := w.server.PutRaw(testTable, m); err != nil {
		w.t.Fatal(err)
	}
}

// nthUpdate lets the n-th UpdateItem meet its fault.
func (w *world) nthUpdate(faults map[int64]fakedynamo.Fault) {
	var n atomic.Int64
	w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
		if r.Op != "UpdateItem" {
			return fakedynamo.Fault{}
		}
		return faults[n.Add(1)]
	})
}

func TestHandOverOfAnItemThatCannotBeRead(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, a, "orders")
		synctest.Wait()
		w.edit("orders", func(m map[string]types.AttributeValue) { m[lockattr.Data] = text("note") })
		if err := l.Release(w.ctx); err != nil {
			t.Error(err)
		}
		<-p.done
		wantErr(t, p.err, ErrMalformed)
		time.Sleep(time.Minute) // for the clean-up
		m := w.server.Item(testTable, a.layout.Key("orders"))
		if m[lockattr.IsReleased] == nil {
			t.Errorf("left held: %v", m)
		}
	})
}

func TestFreeItemThatCannotBeReadIsNotLeftHeld(t *testing.T) {
	for name, edit := range map[string]func(map[string]types.AttributeValue){
		"data":  func(m map[string]types.AttributeValue) { m[lockattr.Data] = text("note") },
		"token": func(m map[string]types.AttributeValue) { m[lockattr.FencingToken] = num("9007199254740992") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b := w.client(), w.client()
				w.release(w.acquire(b, "orders"))
				w.release(w.acquire(a, "warm")) // so that the first request is the write
				w.edit("orders", edit)
				_, err := a.Acquire(w.ctx, "orders")
				wantErr(t, err, ErrMalformed)
				time.Sleep(time.Minute)
				if m := w.server.Item(testTable, a.layout.Key("orders")); m[lockattr.IsReleased] == nil {
					t.Errorf("left held: %v", m)
				}
			})
		})
	}
}

func TestLateCopyOfALaterAttemptTakesNothing(t *testing.T) {
	faults := map[int64]fakedynamo.Fault{1: {DropResponse: true}, 2: {ApplyLate: time.Minute}} // the later one has the larger token
	t.Run("abandoned", func(t *testing.T) {
		bubble(t, func(w *world) {
			a := w.client()
			w.release(w.acquire(a, "warm"))
			w.nthUpdate(faults)
			ctx, cancel := context.WithTimeout(w.ctx, 3*time.Second)
			defer cancel()
			_, _ = a.Acquire(ctx, "orders")
			time.Sleep(70 * time.Second)
			if it := w.item("orders"); !it.Released {
				t.Errorf("taken for nobody: %+v", it)
			}
		})
	})
	t.Run("settled and released", func(t *testing.T) {
		bubble(t, func(w *world) {
			a := w.client()
			w.release(w.acquire(a, "warm"))
			w.nthUpdate(faults)
			l := w.acquire(a, "orders")
			time.Sleep(20 * time.Second)
			w.release(l)
			time.Sleep(50 * time.Second)
			if it := w.item("orders"); !it.Released {
				t.Errorf("taken for nobody: %+v", it)
			}
		})
	})
}

// A hand-over that was applied is a release, whatever became of its heir.
func TestHandOverThatComesToNobodyIsARelease(t *testing.T) {
	short := func(o *AcquireOptions) { o.LeaseDuration = time.Second }
	t.Run("client closes", func(t *testing.T) {
		bubble(t, func(w *world) {
			a := w.client()
			l := w.acquire(a, "orders")
			next := w.goAcquire(w.ctx, a, "orders")
			synctest.Wait()
			w.fault("UpdateItem", 1, fakedynamo.Fault{DelayResponse: 100 * time.Millisecond})
			released := make(chan error, 1)
			go func() { released <- l.Release(w.ctx) }()
			time.Sleep(20 * time.Millisecond)
			_ = a.Close(w.ctx)
			if err := <-released; err != nil {
				t.Error(err)
			}
			<-next.done
			if !w.item("orders").Released {
				t.Error("left held")
			}
		})
	})
	t.Run("too slow", func(t *testing.T) {
		bubble(t, func(w *world) {
			a := w.client()
			l := w.acquire(a, "orders")
			next := w.goAcquire(w.ctx, a, "orders", short)
			synctest.Wait()
			w.fault("UpdateItem", 1, fakedynamo.Fault{DelayResponse: time.Second})
			w.release(l)
			next.mustHold(t)
		})
	})
	t.Run("answer lost, then taken over", func(t *testing.T) {
		bubble(t, func(w *world) {
			a, b := w.client(), w.client(func(o *Options) { o.PollInterval = 50 * time.Millisecond })
			l := w.acquire(a, "orders")
			next := w.goAcquire(w.ctx, a, "orders", short)
			synctest.Wait()
			other := w.goAcquire(w.ctx, b, "orders")
			time.Sleep(100 * time.Millisecond)
			w.fault("UpdateItem", 1, fakedynamo.Fault{DropResponse: true})
			w.release(l)
			w.release(other.mustHold(t))
			next.mustHold(t)
		})
	})
}

func TestResyncDuringALookIsNotForgotten(t *testing.T) {
	bubble(t, func(w *world) {
		w.acquire(w.client(), "orders")
		w.events.ready = errNotYet
		var live atomic.Bool
		b := w.client(w.watching, func(o *Options) {
			o.Observer.Woke = func(_ string, by Wake) {
				if by == WakePoll && live.CompareAndSwap(false, true) {
					w.events.setReady(nil)
				}
			}
		})
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(10 * time.Second)
		w.server.Requests().Reset()
		time.Sleep(time.Minute)
		if n := w.requests("GetItem"); n > 2 {
			t.Errorf("%d reads in a minute although the notifier is live", n)
		}
		_ = b.Close(w.ctx)
		<-p.done
	})
}

func TestNotifierThatDegradesDuringASpread(t *testing.T) {
	bubble(t, func(w *world) {
		l := w.acquire(w.client(), "orders")
		b := w.client(w.watching)
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		b.mu.Lock()
		b.locks["orders"].spread = maxSpread
		b.mu.Unlock()
		w.events.tell(lockevent.Change{Name: "orders", Kind: lockevent.Released, RVN: "x", Token: l.token})
		synctest.Wait()
		w.events.setReady(lockevent.ErrDegraded)
		time.Sleep(time.Second)
		w.events.mute.Store(true)
		start := time.Now()
		w.release(l)
		p.mustHold(t)
		if took := p.at.Sub(start); took > 2*time.Second {
			t.Errorf("acquired %v after the release", took)
		}
	})
}

func TestSlowReadDoesNotHideANewerRelease(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client(w.watching)
		l := w.acquire(a, "orders")
		p := w.goAcquire(w.ctx, b, "orders")
		time.Sleep(time.Second)
		var gets, updates atomic.Int64
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			switch {
			case r.Op == "GetItem" && gets.Add(1) == 1: // Inspect's
				return fakedynamo.Fault{DelayResponse: 40 * time.Millisecond}
			case r.Op == "UpdateItem" && updates.Add(1) == 2: // the waiter's acquire
				return fakedynamo.Fault{DelayRequest: 60 * time.Millisecond, Error: &fakedynamo.APIError{Code: "ThrottlingException"}}
			}
			return fakedynamo.Fault{}
		})
		inspected := make(chan struct{})
		go func() {
			defer close(inspected)
			_, _ = b.Inspect(w.ctx, "orders")
		}()
		time.Sleep(5 * time.Millisecond)
		w.release(l)
		start := time.Now()
		p.mustHold(t)
		if took := p.at.Sub(start); took > 2*time.Second {
			t.Errorf("acquired %v after the release", took)
		}
		<-inspected
	})
}

func TestErrorOfAnotherLockInTheCauseIsNotMistaken(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		ctx, cancel := context.WithCancelCause(w.ctx) // as errgroup does
		_, first := a.Acquire(ctx, "")
		cancel(first)
		_, err := a.Acquire(ctx, "orders")
		var e *Error
		if !errors.As(err, &e) || e.Lock != "orders" {
			t.Errorf("%T: %v", err, err)
		}
	})
}

func TestTokensRiseAfterADateThatJumped(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		w.server.SetClockOffset(serverAhead + 24*time.Hour) // one wrong Date
		w.release(w.acquire(a, "warm"))
		w.server.SetClockOffset(serverAhead)
		w.release(w.acquire(a, "orders"))
		w.release(w.acquire(b, "other"))
		l := w.acquire(b, "orders")
		w.release(l)
		ttl := w.item("orders").TTL
		time.Sleep(3 * time.Hour)
		if w.server.Now().After(ttl) {
			_ = w.server.DeleteRaw(testTable, a.layout.Key("orders"))
		}
		if again := w.acquire(b, "orders"); again.FencingToken() <= l.FencingToken() {
			t.Errorf("fell from %d to %d", l.FencingToken(), again.FencingToken())
		}
	})
}

func TestPauseOfAnOrphanOutlivesTheRetention(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.release(w.acquire(a, "warm"))
		w.fault("UpdateItem", 1, fakedynamo.Fault{DropResponse: true})
		ctx, cancel := context.WithTimeout(w.ctx, 100*time.Millisecond)
		defer cancel()
		time.AfterFunc(50*time.Millisecond, func() {
			w.edit("orders", func(m map[string]types.AttributeValue) {
				m[lockattr.Paused] = text("op")
				delete(m, lockattr.TTL)
			})
		})
		_, _ = a.Acquire(ctx, "orders")
		time.Sleep(20 * time.Second)
		if it := w.item("orders"); !it.Paused || !it.TTL.IsZero() || !it.Released {
			t.Errorf("%+v", it)
		}
	})
}

func TestRefusalWithoutAnItemMakesNoHotLoop(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.release(w.acquire(a, "warm"))
		w.server.Requests().Reset()
		w.fault("UpdateItem", -1, fakedynamo.Fault{Error: &types.ConditionalCheckFailedException{Message: aws.String("x")}})
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		_, _ = a.Acquire(ctx, "orders")
		if n := w.requests("UpdateItem"); n > 100 {
			t.Errorf("%d writes in 10 s", n)
		}
	})
}

func TestDoWithoutAFunctionSendsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		wantErr(t, w.client().Do(w.ctx, "orders", nil), ErrInvalidOption)
		if n := w.server.Requests().Total(); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A second Close returns with its own context, in real time: the first one hangs.
func TestSecondCloseKeepsToItsContext(t *testing.T) {
	server := fakedynamo.New()
	defer server.Close()
	w := &world{t: t, ctx: t.Context(), server: server}
	w.createTable(testTable)
	a, err := New(server.Client(), testTable)
	if err != nil {
		t.Fatal(err)
	}
	w.acquire(a, "orders")
	begun := make(chan struct{}, 16)
	hold := make(chan struct{})
	server.Intercept(func(context.Context, *fakedynamo.Request) fakedynamo.Fault {
		begun <- struct{}{}
		return fakedynamo.Fault{Hold: hold}
	})
	first := make(chan struct{})
	go func() {
		defer close(first)
		_ = a.Close(context.Background())
	}()
	<-begun
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, a.Close(ended), context.Canceled)
	close(hold)
	<-first
}

func TestEnsureTableWhereDescribeLagsBehindCreate(t *testing.T) {
	bubble(t, func(w *world) {
		c := w.tableClient("fresh")
		var n atomic.Int64
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			if r.Op == "DescribeTable" && n.Add(1) == 2 {
				return fakedynamo.Fault{Error: &types.ResourceNotFoundException{}}
			}
			return fakedynamo.Fault{}
		})
		if report, err := c.EnsureTable(w.ctx); err != nil || !report.Created {
			t.Errorf("%+v %v", report, err)
		}
	})
}

func TestEnsureTableThatIsBusyWithSomethingElse(t *testing.T) {
	bubble(t, func(w *world) {
		_, err := w.server.API().CreateTable(w.ctx, &dynamodb.CreateTableInput{
			TableName: aws.String("bare"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.fault("UpdateTable", 1, fakedynamo.Fault{Error: &types.ResourceInUseException{}})
		ctx, cancel := context.WithTimeout(w.ctx, time.Hour)
		defer cancel()
		report, err := w.tableClient("bare").EnsureTable(ctx, func(o *EnsureOptions) { o.Repair = true })
		if err != nil || len(report.Repaired) != 2 {
			t.Errorf("%+v %v", report, err)
		}
	})
}

func TestEnsureTableTellsOfClose(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		w.fault("DescribeTable", -1, fakedynamo.Fault{DropRequest: true})
		done := make(chan error)
		go func() {
			_, err := a.EnsureTable(w.ctx)
			done <- err
		}()
		synctest.Wait()
		_ = a.Close(w.ctx)
		wantErr(t, <-done, ErrClosed)
	})
}
