package locktest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockstream/lockstream/lockclient"
)

func inBubble(o *SuiteOptions) { o.Run = synctest.Test }

// clients is a Backend of real clients on a table in memory.
func clients(t *testing.T, optFns ...func(*lockclient.Options)) Backend {
	table := New(t)
	return Backend{
		Process: func() lockclient.Locker { return table.Client(optFns...).Locker() },
		Lose:    func(name string) { table.TakeOver(name) },
		Waiting: func(name string) { table.TurnedAway(name) },
	}
}

func TestClientInVirtualTime(t *testing.T) {
	TestLocker(t, func(t *testing.T) Backend { return clients(t) }, inBubble)
}

func TestPollingClientInVirtualTime(t *testing.T) {
	TestLocker(t, func(t *testing.T) Backend { return clients(t, Polling) }, inBubble)
}

// TestClientInRealTime has a short lease, so that a loss is noticed soon.
func TestClientInRealTime(t *testing.T) {
	TestLocker(t, func(t *testing.T) Backend {
		return clients(t, func(o *lockclient.Options) { o.LeaseDuration = 2 * time.Second })
	})
}

func TestMemoryInVirtualTime(t *testing.T) {
	TestLocker(t, func(*testing.T) Backend { return newMemory().backend() }, inBubble)
}

// TestSuiteBites runs the suite's checks on lockers with one flaw each, and on none.
func TestSuiteBites(t *testing.T) {
	flaws := []struct{ flaw, check string }{
		{"no exclusion", "Exclusion"},
		{"no exclusion", "DoEndsWithContext"},
		{"no exclusion in a crowd", "Crowd"},
		{"one lock for all names", "NamesAreApart"},
		{"any name", "InvalidName"},
		{"constant token", "TokenRises"},
		{"constant token", "ReleaseEndsWait"},
		{"constant token", "Crowd"},
		{"nil, nil", "Hold"},
		{"nil, nil", "Exclusion"},
		{"TryAcquire nil, nil", "Exclusion"},
		{"typed nil", "Exclusion"},
		{"typed nil", "ContextEndsWait"},
		{"hold never ends", "Hold"},
		{"hold never ends", "Loss"},
		{"always valid", "Hold"},
		{"always valid", "Loss"},
		{"hold ends with the acquire's context", "HoldOutlivesAcquire"},
		{"context values dropped", "HoldOutlivesAcquire"},
		{"every release succeeds", "ReleaseTwice"},
		{"every release succeeds", "Loss"},
		{"release by name", "ReleaseTwice"},
		{"release needs a live context", "ReleaseWithEndedContext"},
		{"nobody is woken", "ReleaseEndsWait"},
		{"waits for ever", "ContextEndsWait"},
		{"ErrHeld forgotten", "ContextEndsWait"},
		{"ghosts", "ContextEndsWait"},
		{"acquires for the dead", "EndedContext"},
		{"silent loss", "Loss"},
		{"silent loss", "DoLoses"},
		{"loss looks like a release", "Loss"},
		{"Close keeps holds", "Close"},
		{"acquires after Close", "Close"},
		{"Close leaves waiters", "CloseEndsWaits"},
		{"Do swallows errors", "Do"},
		{"Do runs twice", "Do"},
		{"Do keeps after a panic", "DoPanics"},
		{"Do swallows panics", "DoPanics"},
		{"Do ignores its context", "DoEndsWithContext"},
		{"Do releases early", "DoEndsWithContext"},
		{"Do hides a loss", "DoLoses"},
	}
	for _, c := range checks {
		t.Run("sound/"+c.name, func(t *testing.T) {
			if failed, texts := runFlawed(t, c, ""); failed {
				t.Errorf("fails a sound locker: %q", texts)
			}
		})
		if !slices.ContainsFunc(flaws, func(f struct{ flaw, check string }) bool { return f.check == c.name }) {
			t.Errorf("no flaw shows that the check %s can fail", c.name)
		}
	}
	for _, f := range flaws {
		t.Run(f.flaw+"/"+f.check, func(t *testing.T) {
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == f.check })
			failed, texts := runFlawed(t, checks[i], f.flaw)
			if !failed {
				t.Error("passes")
			}
			t.Log(texts)
		})
	}
}

// runFlawed runs one check in a bubble on a locker with one flaw.
func runFlawed(t *testing.T, c check, flaw string) (failed bool, texts []string) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(flaw)
		r := &recorder{TB: t}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var o SuiteOptions
			o.setDefaults()
			c.run(r, m.backend(), o)
		}()
		<-ended
		for _, fn := range slices.Backward(r.cleanups) {
			fn()
		}
		close(m.dead)
		synctest.Wait()
		failed, texts = r.failed, r.texts
	})
	return failed, texts
}

// recorder is a test that fails without failing the one around it.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failed   bool
	texts    []string
	cleanups []func()
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.texts = append(r.texts, text)
}

func (r *recorder) Helper()                           {}
func (r *recorder) Cleanup(fn func())                 { r.cleanups = append(r.cleanups, fn) }
func (r *recorder) Error(args ...any)                 { r.note(fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
