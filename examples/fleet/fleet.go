package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// fleet is the supervisor. One goroutine owns it: the one that plays the scenario. While
// the scenario waits for something, it takes in events and draws the view.
type fleet struct {
	view     view
	events   chan event
	children []*child // all that were ever started
	pids     []int    // of all processes, the emulators too
	began    instant
	endsAt   time.Time

	past  *history // of the present phase
	title string
}

func newFleet(v view) *fleet {
	return &fleet{view: v, events: make(chan event, 256), past: newHistory(nil), began: now(), endsAt: time.Now().Add(plannedTime)}
}

// until takes in events until one matches. It fails when that takes longer than limit,
// when a worker fails or ends unexpectedly, and when ctx ends. Without a match function
// it goes on for the whole limit and succeeds.
func (f *fleet) until(ctx context.Context, limit time.Duration, what string, match func(event) bool) (event, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case e := <-f.events:
			if err := f.take(e); err != nil {
				return e, err
			}
			if match != nil && match(e) {
				return e, nil
			}
		case <-tick.C:
			f.view.draw(f.snapshot)
		case <-timer.C:
			if match == nil {
				return event{}, nil
			}
			return event{}, fmt.Errorf("%s: not within %v", what, limit)
		case <-ctx.Done():
			return event{}, context.Cause(ctx)
		}
	}
}

// during goes on for d.
func (f *fleet) during(ctx context.Context, d time.Duration) error {
	_, err := f.until(ctx, d, "", nil)
	return err
}

// take records one event.
func (f *fleet) take(e event) error {
	c := f.child(e.Worker)
	f.past.add(e)
	switch e.Kind {
	case evReady:
		c.ready = true
	case evFailed:
		return fmt.Errorf("%s: %s", workerName(e.Worker), e.Text)
	case evGone:
		c.gone = true
		if !c.doomed || e.Text != "" && !f.past.wasKilled(c.id) {
			return fmt.Errorf("%s (process %d) ended unexpectedly: %s %s", workerName(c.id), c.pid(), e.Text, c.stderr)
		}
	}
	return nil
}

func (f *fleet) child(id int) *child {
	for _, c := range f.children {
		if c.id == id {
			return c
		}
	}
	return nil
}

// spawn starts a worker in each of the slots, waits until all are ready, and lets them run.
func (f *fleet) spawn(ctx context.Context, w *world, polling bool, slots ...int) error {
	first := len(f.children)
	for _, slot := range slots {
		c, err := startChild(len(f.children)+1, slot, w.emulator.Environ(), f.events)
		if err != nil {
			return err
		}
		f.children = append(f.children, c)
		f.pids = append(f.pids, c.pid())
		err = c.send(command{Do: orderStart, Setup: &setup{
			ID: c.id, LockTable: w.lockTable, CounterTable: w.counters.table,
			Polling: polling, Contentions: contentions(slot, polling),
		}})
		if err != nil {
			return err
		}
	}
	started := f.children[first:]
	for missing := len(started); missing > 0; missing-- {
		isReady := func(e event) bool { return e.Kind == evReady }
		if _, err := f.until(ctx, readyLimit, "a worker that is ready", isReady); err != nil {
			return err
		}
	}
	for _, c := range started {
		if err := c.send(command{Do: orderRun}); err != nil {
			return err
		}
	}
	return nil
}

// stop lets all workers finish what they do and end.
func (f *fleet) stop(ctx context.Context) error {
	f.past.stopWaits(now())
	for _, c := range f.running() {
		c.doomed = true
		if err := c.send(command{Do: orderStop}); err != nil {
			return err
		}
	}
	for len(f.running()) > 0 {
		_, err := f.until(ctx, stopLimit, "the end of all workers", func(e event) bool { return e.Kind == evGone })
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) running() []*child {
	var all []*child
	for _, c := range f.children {
		if !c.gone {
			all = append(all, c)
		}
	}
	return all
}

// abort ends the workers after a failure or an interruption: first by the end of their
// input, on which they give back what they hold, then by force.
func (f *fleet) abort() {
	for _, c := range f.running() {
		c.doomed = true
		_ = c.stdin.Close()
		_ = thaw(c.cmd.Process) // it may be stopped
	}
	f.drain(killedWaitLimit)
	for _, c := range f.running() {
		_ = c.cmd.Process.Kill()
	}
	f.drain(killedWaitLimit)
}

// drain takes in events, whatever they say, until all workers are gone or the limit has passed.
func (f *fleet) drain(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for len(f.running()) > 0 {
		select {
		case e := <-f.events:
			_ = f.take(e)
		case <-timer.C:
			return
		}
	}
}

// survivors are the processes that were started and have not ended.
func (f *fleet) survivors() []int {
	var all []int
	for _, pid := range f.pids {
		if !hasEnded(pid) {
			all = append(all, pid)
		}
	}
	return all
}

// note shows a line of the story.
func (f *fleet) note(mood mood, format string, args ...any) {
	f.view.note(note{at: now().sub(f.began), mood: mood, text: fmt.Sprintf(format, args...)})
}

var errInterrupted = errors.New("interrupted")
