package locktest

import (
	"context"
	"sync"

	"github.com/lockstream/lockstream/lockclient"
)

// memoryHold is a hold of a lock in memory.
type memoryHold struct {
	m     *memory
	name  string
	token int64
	ctx   context.Context
	end   context.CancelCauseFunc

	mu  sync.Mutex
	err error
}

// finish ends the hold once and reports whether it did.
func (h *memoryHold) finish(cause error) bool {
	if h.m == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.err == nil
	if first {
		h.err = cause
		if !h.m.has("hold never ends") {
			h.end(cause)
		}
	}
	return first
}

func (h *memoryHold) Name() string             { return h.name }
func (h *memoryHold) FencingToken() int64      { return h.token }
func (h *memoryHold) Context() context.Context { return h.ctx }
func (h *memoryHold) Done() <-chan struct{}    { return h.ctx.Done() }
func (h *memoryHold) Valid() bool              { return h.Err() == nil || h.m.has("always valid") }

func (h *memoryHold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *memoryHold) Release(ctx context.Context) error {
	if h.m.has("release needs a live context") && ctx.Err() != nil {
		return ctx.Err()
	}
	if !h.finish(lockclient.ErrReleased) {
		if h.m.has("release by name") {
			h.m.free(h)
		}
		if h.m.has("every release succeeds") {
			return nil
		}
		return h.Err()
	}
	h.m.free(h)
	return nil
}
