package locktest_test

import (
	"context"
	"testing"
	"time"

	"github.com/lockstream/lockstream/lockclient/locktest"
)

// TestTurnedAwayForgets: who was turned away by an earlier hold does not count for a later
// one, even if it gave up and nothing told that it has gone.
func TestTurnedAwayForgets(t *testing.T) {
	bubble(t, func(t *testing.T, table *locktest.Table) {
		c := table.Client()
		f := table.Hold("a")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = c.Acquire(ctx, "a")
		}()
		table.TurnedAway("a", c)
		cancel()
		<-done
		f.Release()
		table.Hold("a")
		start := time.Now()
		go func() {
			time.Sleep(10 * time.Second)
			_, _ = c.Acquire(t.Context(), "a")
		}()
		table.TurnedAway("a", c)
		if took := time.Since(start); took < 10*time.Second {
			t.Errorf("returned after %s, for a contender of an earlier hold", took)
		}
	})
}
