package lockclient

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// The service lets two requests that contain one item conflict when one of them is a
// transaction. So transactions with a lease's held check keep out of the way of each other,
// by a bound, and of the lease's own writes, by a gate.
const (
	maxTransactions = 8                      // of one lease at a time
	maxGateWait     = 100 * time.Millisecond // of a renewal for those under way; with a short lease a twentieth of it
)

// errGateEnded says that the lease ended while a transaction waited at its gate.
var errGateEnded = errors.New("lockclient: lease ended")

// transactGate lets transactions of one lease through in their order, so many at a time as do
// not conflict, and none while it is shut. Who shuts it is never kept waiting by those who
// come: they stay outside until it is open again. The zero value is open.
type transactGate struct {
	mu      sync.Mutex
	running int
	fewer   float64         // how many fewer than maxTransactions: halves the rest with each conflict
	queue   []chan struct{} // closed when let in
	shutNow bool
	idle    chan struct{} // nil unless somebody waits for running to be 0
}

// enter waits until one more transaction may be sent. One that was sent before and met a
// conflict comes before all others. Whoever gets nil must call leave.
func (g *transactGate) enter(ctx context.Context, ended <-chan struct{}, again bool) error {
	turn := make(chan struct{})
	g.mu.Lock()
	if again {
		g.queue = slices.Insert(g.queue, 0, turn)
	} else {
		g.queue = append(g.queue, turn)
	}
	g.admit()
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ended:
		g.giveUp(turn)
		return errGateEnded
	case <-ctx.Done():
		g.giveUp(turn)
		return context.Cause(ctx)
	}
}

// giveUp takes a turn out of the queue, or ends it where it has begun.
func (g *transactGate) giveUp(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, turn); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		return
	}
	g.exit()
}

// admit lets in whom it can. g.mu is held.
func (g *transactGate) admit() {
	for !g.shutNow && len(g.queue) > 0 && float64(g.running)+1 <= maxTransactions-g.fewer {
		g.running++
		close(g.queue[0])
		g.queue = g.queue[1:]
	}
}

// leave ends a turn. A conflict halves how many are let in at a time, down to one; what goes
// well lets in a little more again.
func (g *transactGate) leave(conflict bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if conflict {
		g.fewer = min(g.fewer+(maxTransactions-g.fewer)/2, maxTransactions-1)
	} else {
		g.fewer = max(g.fewer-1.0/maxTransactions, 0)
	}
	g.exit()
}

func (g *transactGate) exit() {
	g.running--
	if g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
	g.admit()
}

// shut keeps transactions out until reopen, and waits for those under way, but for limit at
// most. Only the owner of the lease's own gate calls it.
func (g *transactGate) shut(ctx context.Context, limit time.Duration) {
	g.mu.Lock()
	g.shutNow = true
	if g.running == 0 {
		g.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	g.idle = idle
	g.mu.Unlock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
	case <-ctx.Done():
	}
}

func (g *transactGate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shutNow, g.idle = false, nil
	g.admit()
}

// gateWait bounds how long a write of the lease waits for transactions under way.
func gateWait(lease time.Duration) time.Duration { return min(lease/20, maxGateWait) }
