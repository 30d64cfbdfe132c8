package lockclient

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo"
)

func names(s *LeaseSet) (names []string) {
	for _, l := range s.Leases() {
		names = append(names, l.Name())
	}
	return names
}

func TestAcquireAllSortsAndHoldsAll(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a := w.client()
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(w.ctx, key{}, "v"))
		s, err := a.AcquireAll(ctx, []string{"c", "a", "b"})
		cancel() // bounds the wait only
		if err != nil {
			t.Fatal(err)
		}
		if got := names(s); len(got) != 3 || got[0] != "a" || got[1] != "b" || got[2] != "c" {
			t.Errorf("%v", got)
		}
		time.Sleep(time.Minute)
		if !s.Valid() || s.Err() != nil || s.Context().Err() != nil || s.Context().Value(key{}) != "v" {
			t.Errorf("%v", s.Err())
		}
		if l, ok := s.Lease("b"); !ok || l.Name() != "b" {
			t.Error("no lease of b")
		}
		if n := len(HeldChecks(s.Context())); n != 3 || len(s.HeldChecks()) != 3 {
			t.Errorf("%d held checks", n)
		}
		if err := s.Transact(w.ctx, add("row")); err != nil || w.counted("row") != 1 {
			t.Errorf("%v", err)
		}
		if err := s.Release(w.ctx); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if it := w.item(name); !it.Released {
				t.Errorf("%s is held", name)
			}
		}
		wantErr(t, context.Cause(s.Context()), ErrReleased)
		wantErr(t, s.Err(), ErrReleased)
		wantErr(t, s.Release(w.ctx), ErrReleased)
	})
}

func TestAcquireAllIsAllOrNone(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		held := w.acquire(b, "b")
		start := time.Now()
		s, err := a.AcquireAll(w.ctx, []string{"b", "a", "c"}, func(o *AcquireOptions) { o.Wait = 30 * time.Second })
		if s != nil {
			t.Fatal("acquired")
		}
		wantErr(t, err, ErrHeld, ErrWaitElapsed)
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("waited %v", took)
		}
		if it := w.item("a"); !it.Released {
			t.Error("a was kept")
		}
		if w.item("c") != nil {
			t.Error("c was touched before its turn")
		}
		w.release(held)
		if s, err = a.AcquireAll(w.ctx, []string{"b", "a", "c"}); err != nil {
			t.Fatal(err)
		}
		w.steal(s.Leases()[1], "thief#1", false)
		<-s.Done()
		wantErr(t, s.Err(), ErrLost)
		wantErr(t, context.Cause(s.Context()), ErrLost)
		if s.Valid() {
			t.Error("valid without b")
		}
		wantErr(t, s.Release(w.ctx), ErrLost)
		if !w.item("a").Released || !w.item("c").Released || w.item("b").Released {
			t.Error("not what was held was released")
		}
	})
}

// A lease that is lost while others are waited for ends the wait.
func TestAcquireAllLosesOneWhileItWaits(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.client(), w.client()
		w.acquire(b, "b")
		var s *LeaseSet
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			s, err = a.AcquireAll(w.ctx, []string{"a", "b"})
		}()
		time.Sleep(2 * time.Second)
		w.steal(&Lease{c: a, name: "a"}, "thief#1", false)
		<-done
		wantErr(t, err, ErrLost)
		if s != nil || errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestAcquireAllRefusesBadNames(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.client()
		for name, list := range map[string][]string{"twice": {"a", "b", "a"}, "none": nil, "empty": {"a", ""}} {
			_, err := a.AcquireAll(w.ctx, list)
			if !errors.Is(err, ErrInvalidOption) && !errors.Is(err, ErrInvalidName) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if w.server.Requests().Total() != 0 {
			t.Error("something was sent")
		}
	})
}

// Many callers with the same locks in every order never wait for each other.
func TestAcquireAllDoesNotDeadlock(t *testing.T) {
	bubble(t, func(w *world) {
		var wg sync.WaitGroup
		for i, order := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c"}, {"c", "a"}} {
			c := w.client()
			wg.Go(func() {
				for range 5 {
					ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
					s, err := c.AcquireAll(ctx, order)
					cancel()
					if err != nil {
						t.Errorf("%d: %v", i, err)
						return
					}
					time.Sleep(10 * time.Millisecond)
					if err := s.Release(w.ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// The checks of a Do within a Do fence both; transactions that stand in each other's way at
// two gates go through.
func TestHeldChecksOfNestedWork(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a := w.client()
		if HeldChecks(w.ctx) != nil {
			t.Error("checks without a lease")
		}
		err := a.Do(w.ctx, "outer", func(ctx context.Context) error {
			return a.Do(ctx, "inner", func(ctx context.Context) error {
				l, _ := LeaseFromContext(ctx)
				checks := HeldChecks(ctx)
				if l.Name() != "inner" || len(checks) != 2 {
					t.Errorf("%s, %d checks", l.Name(), len(checks))
				}
				if err := l.Transact(ctx, checks[1], add("row")); err != nil {
					t.Error(err)
				}
				w.steal(l.outer, "thief#1", false)
				err := l.Transact(ctx, checks[1], add("row"))
				var action *ActionError
				if !errors.As(err, &action) || action.Index != 0 {
					t.Errorf("%v", err)
				}
				wantErr(t, a.Transact(ctx, []*Lease{l, l.outer}, add("row")), ErrLost)
				return nil
			})
		})
		wantErr(t, err, ErrLost)
		if w.counted("row") != 1 {
			t.Errorf("counted %d", w.counted("row"))
		}
	})
}

func TestTransactionsOfSetsInEveryOrder(t *testing.T) {
	bubble(t, func(w *world) {
		w.withResource()
		a := w.client(everyMs(10 * time.Millisecond))
		s, err := a.AcquireAll(w.ctx, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		w.server.Intercept(func(_ context.Context, r *fakedynamo.Request) fakedynamo.Fault {
			return fakedynamo.Fault{TransactionConflict: r.Op == "TransactWriteItems" && r.Number%5 == 0}
		})
		ls := s.Leases()
		var wg sync.WaitGroup
		for i := range 100 {
			leases := ls
			if i%2 == 0 {
				leases = []*Lease{ls[1], ls[0]}
			}
			wg.Go(func() {
				if err := a.Transact(w.ctx, leases, []types.TransactWriteItem{add("row")}...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := w.counted("row"); n != 100 || s.Err() != nil {
			t.Errorf("%d, %v", n, s.Err())
		}
	})
}
