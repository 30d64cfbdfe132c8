package locktest

import (
	"strings"
	"testing"
	"testing/synctest"
)

// TestMisuseFailsTheTest: what a test expects of others and cannot be fails that test.
func TestMisuseFailsTheTest(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*Table)
		want string
	}{
		"hold a held lock":      {func(tab *Table) { tab.Hold("a"); tab.Hold("a") }, "TakeOver takes it away"},
		"take over a free lock": {func(tab *Table) { tab.TakeOver("a") }, "nobody holds it"},
		"reap a free lock":      {func(tab *Table) { tab.Reap("a") }, "nobody holds it"},
		"release a lost lock":   {func(tab *Table) { f := tab.Hold("a"); tab.Delete("a"); f.Release() }, "has lost it"},
		"expire a lost lock":    {func(tab *Table) { f := tab.Hold("a"); tab.TakeOver("a"); f.Expire() }, "has lost it"},
		"an empty name":         {func(tab *Table) { tab.Hold("") }, "invalid lock name"},
		"nobody contends":       {func(tab *Table) { tab.Hold("a"); tab.TurnedAway("a") }, "no contender was turned away"},
		"another contends": {func(tab *Table) {
			tab.Hold("a")
			go func() { _, _ = tab.Client().Acquire(tab.ctx, "a") }()
			tab.TurnedAway("a")
			tab.TurnedAway("a", tab.Client())
		}, "no contender was turned away"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					test.do(New(r))
				}()
				<-ended
				for _, fn := range r.cleanups {
					fn()
				}
				if !r.failed || !strings.Contains(strings.Join(r.texts, "\n"), test.want) {
					t.Errorf("texts %q, want %q", r.texts, test.want)
				}
			})
		})
	}
}
