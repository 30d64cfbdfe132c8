package main

import (
	"encoding/json"
	"io"
	"time"
)

// instant is a reading of the machine's monotonic clock in nanoseconds. All processes on
// the machine share it. Zero means unknown.
type instant int64

func (i instant) sub(earlier instant) time.Duration { return time.Duration(i - earlier) }

// order says what a worker is to do.
type order string

const (
	orderStart order = "start" // connect, and tell when ready; with the setup
	orderRun   order = "run"   // contend
	orderHold  order = "hold"  // keep the hot lock at the next acquire, until orderWrite
	orderWrite order = "write" // send the fenced write of the long hold, whatever became of the lease
	orderStop  order = "stop"  // finish the present holds, close and end
)

// command is a line from the supervisor to a worker.
type command struct {
	Do    order  `json:"do"`
	Setup *setup `json:"setup,omitempty"`
}

// setup is what a worker has to know.
type setup struct {
	ID           int          `json:"id"`
	LockTable    string       `json:"lockTable"`
	CounterTable string       `json:"counterTable"`
	Polling      bool         `json:"polling"` // no notifier: contenders poll
	Contentions  []contention `json:"contentions"`
}

// eventKind says what a worker tells.
type eventKind string

const (
	evReady     eventKind = "ready"      // connected, its watcher is live
	evWaiting   eventKind = "waiting"    // a contender begins to wait
	evWoke      eventKind = "woke"       // it looks again; By
	evAcquired  eventKind = "acquired"   // Acquire returned a lease; Called, By
	evLongHold  eventKind = "long hold"  // the ordered hold has begun
	evWrote     eventKind = "wrote"      // the table acknowledged a fenced write
	evReleasing eventKind = "releasing"  // Release is about to be called
	evReleased  eventKind = "released"   // Release returned; HandedOver
	evLost      eventKind = "lost"       // a lease ended without a release; By: the reason
	evRefused   eventKind = "refused"    // an acquiring write was refused; FirstLook
	evAsked     eventKind = "asked"      // a waiter sent a request unprompted; Op, By, Won
	evLateWrite eventKind = "late write" // outcome of the write after the lease's end; Late
	evFailed    eventKind = "failed"     // something that must not happen; Text
	evBye       eventKind = "bye"        // an orderly end; Requests
	evGone      eventKind = "gone"       // made by the supervisor: the process has ended
)

// event is a line from a worker to the supervisor.
type event struct {
	At         instant     `json:"at"`
	Kind       eventKind   `json:"kind"`
	Lock       string      `json:"lock,omitempty"`
	Token      int64       `json:"token,omitempty"`
	Called     instant     `json:"called,omitempty"`
	By         string      `json:"by,omitempty"`
	HandedOver bool        `json:"handedOver,omitempty"`
	FirstLook  bool        `json:"firstLook,omitempty"`
	Op         string      `json:"op,omitempty"`
	Won        bool        `json:"won,omitempty"`
	Text       string      `json:"text,omitempty"`
	Late       *lateReport `json:"late,omitempty"`
	Requests   int         `json:"requests,omitempty"`

	Worker int `json:"-"` // set by the supervisor
}

// lateReport is what a worker saw when it went on after its lease's end.
type lateReport struct {
	Valid   bool   `json:"valid"`   // what Lease.Valid said
	Lost    bool   `json:"lost"`    // the lease's context had ended, with ErrLost as its cause
	Reason  string `json:"reason"`  // why
	Refused bool   `json:"refused"` // the table refused the write by the held check
	Error   string `json:"error,omitempty"`
}

// emitter writes events. A line is one write and far below what a pipe takes at once, so
// lines of several goroutines do not mix.
type emitter struct{ w io.Writer }

func (m emitter) emit(e event) {
	if e.At == 0 {
		e.At = now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return // an event is made of plain fields: it always marshals
	}
	// When the supervisor is gone, the end of standard input ends the worker.
	_, _ = m.w.Write(append(line, '\n'))
}
