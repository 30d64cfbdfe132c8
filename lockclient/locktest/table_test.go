package locktest_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/lockclient"
	"github.com/lockstream/lockstream/lockclient/locktest"
)

// bubble runs fn in virtual time with a table of 4 ms latency.
func bubble(t *testing.T, fn func(t *testing.T, table *locktest.Table)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fn(t, locktest.New(t, func(o *locktest.Options) { o.Latency = 4 * time.Millisecond }))
	})
}

func acquire(t *testing.T, c *lockclient.Client, name string, optFns ...func(*lockclient.AcquireOptions)) *lockclient.Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), name, optFns...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type result struct {
	lease *lockclient.Lease
	err   error
}

func goAcquire(t *testing.T, c *lockclient.Client, name string) <-chan result {
	got := make(chan result, 1)
	go func() {
		l, err := c.Acquire(t.Context(), name)
		got <- result{l, err}
	}()
	return got
}

func wantStatus(t *testing.T, table *locktest.Table, name string, want locktest.Status) locktest.State {
	t.Helper()
	s := table.State(name)
	if s.Status != want {
		t.Errorf("%q is %s, want %s", name, s.Status, want)
	}
	return s
}

// TestCleanUpEndsEverything leaves all that a table can start: a bubble fails when a
// goroutine outlives its cleanups, so it is the table's that have ended them.
func TestCleanUpEndsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		a, b := table.Client(), table.Client(locktest.Polling)
		acquire(t, a, "left held")
		table.Hold("foreign")
		for _, c := range []*lockclient.Client{a, b} {
			go func() { _, _ = c.Acquire(context.Background(), "foreign") }()
		}
		table.TurnedAway("foreign", a, b)
		table.Next(1000, locktest.Hang)
		go func() { _, _ = b.TryAcquire(context.Background(), "hanging") }()
		synctest.Wait()
	})
}

// TestEventsWakeWithoutRequests: a waiter sends nothing for an hour and wakes at once.
func TestEventsWakeWithoutRequests(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		c := table.Client(func(o *lockclient.Options) { o.Fallback = 2 * time.Hour })
		other := table.Hold("a")
		got := goAcquire(t, c, "a")
		table.TurnedAway("a", c)
		before := table.Requests()
		time.Sleep(time.Hour)
		if now := table.Requests(); now != before {
			t.Errorf("requests went from %+v to %+v while the holder renewed", before, now)
		}
		start := time.Now()
		other.Release()
		r := <-got
		if r.err != nil || time.Since(start) > 10*time.Millisecond || r.lease.FencingToken() <= other.FencingToken() {
			t.Errorf("%v after %s", r.err, time.Since(start))
		}
		if now := table.Requests(); now.Writes != before.Writes+1 || now.Reads != before.Reads {
			t.Errorf("requests went from %+v to %+v, want one write", before, now)
		}
	})
}

// TestPollingPolls is the twin: without events the waiter asks again and again.
func TestPollingPolls(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		c := table.Client(locktest.Polling)
		table.Hold("a")
		goAcquire(t, c, "a")
		table.TurnedAway("a", c)
		before := table.Requests()
		time.Sleep(time.Minute)
		if n := table.Requests().Reads - before.Reads; n < 50 || n > 75 {
			t.Errorf("%d reads in a minute", n)
		}
	})
}

func TestForeignHold(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		c := table.Client()
		wantStatus(t, table, "a", locktest.Absent)
		f := table.Hold("a", func(o *locktest.HoldOptions) {
			o.Label, o.Lease, o.Data = "job-1", 5*time.Second, []byte("cursor")
		})
		s := wantStatus(t, table, "a", locktest.Held)
		if s.Label != "job-1" || s.Lease != 5*time.Second || string(s.Data) != "cursor" || s.Token != f.FencingToken() || s.Holder != f.Holder() {
			t.Errorf("state %+v", s)
		}
		_, err := c.TryAcquire(t.Context(), "a")
		var held *lockclient.HeldError
		if !errors.As(err, &held) || held.Label != "job-1" || held.Holder != f.Holder() || held.Token != f.FencingToken() {
			t.Errorf("TryAcquire: %v", err)
		}
		f.Release()
		wantStatus(t, table, "a", locktest.Released)
		l := acquire(t, c, "a")
		if l.FencingToken() <= f.FencingToken() || !bytes.Equal(l.Data(), []byte("cursor")) {
			t.Errorf("token %d after %d, data %q", l.FencingToken(), f.FencingToken(), l.Data())
		}
	})
}

func TestDeadForeign(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		c := table.Client()
		f := table.Hold("a", func(o *locktest.HoldOptions) { o.Lease = 30 * time.Second })
		got := goAcquire(t, c, "a")
		table.TurnedAway("a")
		time.Sleep(10 * time.Minute)
		f.Die()
		died := time.Now()
		wantStatus(t, table, "a", locktest.Held)
		r := <-got
		if took := time.Since(died); r.err != nil || took < 20*time.Second || took > 33*time.Second {
			t.Errorf("%v %s after the holder's death", r.err, took)
		}

		f = table.Hold("b")
		got = goAcquire(t, c, "b")
		table.TurnedAway("b")
		died = time.Now()
		f.Expire()
		if r := <-got; r.err != nil || time.Since(died) > 20*time.Millisecond {
			t.Errorf("%v %s after the lease was over", r.err, time.Since(died))
		}
	})
}

// TestLossesByOthers: what others do to a client's lock shows as the reason of the loss.
func TestLossesByOthers(t *testing.T) {
	for want, do := range map[lockclient.Reason]func(*locktest.Table){
		lockclient.TakenOver: func(table *locktest.Table) { table.TakeOver("a") },
		lockclient.Reaped:    func(table *locktest.Table) { table.Reap("a") },
		lockclient.Deleted:   func(table *locktest.Table) { table.Delete("a") },
	} {
		bubble(t, func(t *testing.T, table *locktest.Table) {
			l := acquire(t, table.Client(), "a")
			time.Sleep(time.Minute)
			do(table)
			<-l.Done()
			var lost *lockclient.LostError
			if !errors.As(l.Err(), &lost) || lost.Reason != want {
				t.Errorf("lost by %v, want %s", l.Err(), want)
			}
		})
	}
}

// TestFreedByOthersWakes: a reap and a deletion wake a contender of another process.
func TestFreedByOthersWakes(t *testing.T) {
	for name, do := range map[string]func(*locktest.Table, string){"reaped": (*locktest.Table).Reap, "deleted": (*locktest.Table).Delete} {
		bubble(t, func(t *testing.T, table *locktest.Table) {
			table.Hold(name).Die()
			c := table.Client()
			got := goAcquire(t, c, name)
			table.TurnedAway(name, c)
			start := time.Now()
			do(table, name)
			if r := <-got; r.err != nil || time.Since(start) > 20*time.Millisecond {
				t.Errorf("%s: %v after %s", name, r.err, time.Since(start))
			}
		})
	}
}

func TestFaults(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		c := table.Client()
		l := acquire(t, c, "a")
		for _, f := range []locktest.Fault{locktest.Fail, locktest.Hang, locktest.LoseAnswer} {
			before, token := table.Requests(), l.FencingToken()
			table.Next(1, f)
			if err := l.Renew(t.Context(), nil); err != nil || !l.Valid() || l.FencingToken() != token {
				t.Errorf("fault %d: %v", f, err)
			}
			if n := table.Requests().Writes - before.Writes; n < 2 {
				t.Errorf("fault %d: %d writes, want more than without it", f, n)
			}
		}
		table.Next(1_000_000, locktest.Fail)
		<-l.Done()
		var lost *lockclient.LostError
		if !errors.As(l.Err(), &lost) || lost.Reason != lockclient.Expired || lost.Last == nil {
			t.Errorf("after an outage: %v", l.Err())
		}
		table.Heal()
		if err := acquire(t, c, "b").Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestLostAnswerIsApplied tells LoseAnswer from Hang by what the table shows.
func TestLostAnswerIsApplied(t *testing.T) {
	for f, want := range map[locktest.Fault]locktest.Status{locktest.Hang: locktest.Absent, locktest.LoseAnswer: locktest.Held} {
		bubble(t, func(t *testing.T, table *locktest.Table) {
			c := table.Client()
			acquire(t, c, "first") // a client's very first request is a read
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			table.Next(1, f)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = c.Acquire(ctx, "a")
			}()
			time.Sleep(50 * time.Millisecond)
			wantStatus(t, table, "a", want)
			<-done
		})
	}
}

// TestKeyPrefix: the names here are those with the prefix, and events find their waiter.
func TestKeyPrefix(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		c := table.Client(func(o *lockclient.Options) { o.KeyPrefix = "lock/" })
		f := table.Hold("lock/a")
		got := goAcquire(t, c, "a")
		table.TurnedAway("lock/a", c)
		start := time.Now()
		f.Release()
		if r := <-got; r.err != nil || time.Since(start) > 20*time.Millisecond {
			t.Errorf("%v after %s", r.err, time.Since(start))
		}
	})
}

// TestHeldCheck: the SDK client takes part in transactions with a lease's check.
func TestHeldCheck(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		l := acquire(t, table.Client(), "a")
		commit := func() error {
			_, err := table.DynamoDB().TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				TransactItems: []types.TransactWriteItem{l.HeldCheck()},
			})
			return err
		}
		if err := commit(); err != nil {
			t.Error(err)
		}
		table.TakeOver("a")
		var canceled *types.TransactionCanceledException
		if err := commit(); !errors.As(err, &canceled) {
			t.Errorf("after a takeover: %v", err)
		}
	})
}

// TestEnsureTableFindsEverything: code that makes its own table finds it complete.
func TestEnsureTableFindsEverything(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		report, err := table.Client().EnsureTable(t.Context())
		if err != nil || report.Created || len(report.Missing) > 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}
