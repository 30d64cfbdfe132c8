package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lockstream/lockstream/lockclient"
)

// memory is a store of locks in this process, whose lockers keep the contract unless they
// are given flaws.
type memory struct {
	flaws []string
	dead  chan struct{} // closed at the end: frees whoever a flaw left waiting

	mu    sync.Mutex
	locks map[string]*memoryLock
}

type memoryLock struct {
	holder *memoryHold
	token  int64
	grants int
	freed  chan struct{} // closed when the lock becomes free
}

func newMemory(flaws ...string) *memory {
	return &memory{flaws: flaws, dead: make(chan struct{}), locks: map[string]*memoryLock{}}
}

func (m *memory) has(flaw string) bool { return slices.Contains(m.flaws, flaw) }

func (m *memory) backend() Backend {
	return Backend{
		Process: func() lockclient.Locker {
			k := &memoryLocker{m: m}
			k.open, k.shut = context.WithCancelCause(context.Background())
			return k
		},
		Lose: func(name string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			l := m.lock(name)
			if l.holder != nil && !m.has("silent loss") {
				cause := lockclient.ErrLost
				if m.has("loss looks like a release") {
					cause = lockclient.ErrReleased
				}
				l.holder.finish(cause)
			}
			l.holder = &memoryHold{}
		},
	}
}

// lock returns a lock; m.mu is held.
func (m *memory) lock(name string) *memoryLock {
	if m.has("one lock for all names") {
		name = ""
	}
	if m.locks[name] == nil {
		m.locks[name] = &memoryLock{freed: make(chan struct{})}
	}
	return m.locks[name]
}

// grant gives the lock to a new hold, or returns nil and what tells that it is free.
func (m *memory) grant(ctx context.Context, name string) (*memoryHold, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lock(name)
	leaky := m.has("no exclusion in a crowd") && l.grants > 5
	if l.holder != nil && !leaky && !m.has("no exclusion") {
		return nil, l.freed
	}
	l.grants++
	if l.token == 0 || !m.has("constant token") {
		l.token++
	}
	h := &memoryHold{m: m, name: name, token: l.token}
	if m.has("context values dropped") {
		ctx = context.Background()
	}
	if !m.has("hold ends with the acquire's context") {
		ctx = context.WithoutCancel(ctx)
	}
	h.ctx, h.end = context.WithCancelCause(ctx)
	l.holder = h
	return h, nil
}

// free frees the lock if h is its holder.
func (m *memory) free(h *memoryHold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lock(h.name)
	if l.holder != h && !m.has("release by name") {
		return
	}
	l.holder = nil
	if !m.has("nobody is woken") {
		close(l.freed)
		l.freed = make(chan struct{})
	}
}

type memoryLocker struct {
	m    *memory
	open context.Context
	shut context.CancelCauseFunc

	mu    sync.Mutex
	holds []*memoryHold
}

// admit says what is wrong with a call before anything is tried.
func (k *memoryLocker) admit(ctx context.Context, name string) error {
	switch {
	case name == "" && !k.m.has("any name"):
		return lockclient.ErrInvalidName
	case ctx.Err() != nil && !k.m.has("acquires for the dead"):
		return ctx.Err()
	case k.open.Err() != nil && !k.m.has("acquires after Close"):
		return lockclient.ErrClosed
	}
	return nil
}

func (k *memoryLocker) keep(h *memoryHold) lockclient.Hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holds = append(k.holds, h)
	return h
}

// refuse returns the error, with a hold where that is the flaw.
func (k *memoryLocker) refuse(err error) (lockclient.Hold, error) {
	if k.m.has("typed nil") {
		return (*memoryHold)(nil), err
	}
	return nil, err
}

func (k *memoryLocker) Acquire(ctx context.Context, name string) (lockclient.Hold, error) {
	if err := k.admit(ctx, name); err != nil {
		return k.refuse(err)
	}
	if k.m.has("nil, nil") {
		return nil, nil
	}
	ended, closed := ctx.Done(), k.open.Done()
	if k.m.has("waits for ever") {
		ended = nil
	}
	if k.m.has("Close leaves waiters") {
		closed = nil
	}
	for {
		h, freed := k.m.grant(ctx, name)
		if h != nil {
			return k.keep(h), nil
		}
		select {
		case <-freed:
		case <-ended:
			if k.m.has("ghosts") {
				go func() {
					select {
					case <-freed:
						k.m.grant(ctx, name)
					case <-k.m.dead:
					}
				}()
			}
			if k.m.has("ErrHeld forgotten") {
				return k.refuse(ctx.Err())
			}
			return k.refuse(errors.Join(lockclient.ErrHeld, ctx.Err()))
		case <-closed:
			return k.refuse(lockclient.ErrClosed)
		case <-k.m.dead:
			return k.refuse(errors.New("the test is over"))
		}
	}
}

func (k *memoryLocker) TryAcquire(ctx context.Context, name string) (lockclient.Hold, error) {
	if err := k.admit(ctx, name); err != nil {
		return k.refuse(err)
	}
	h, _ := k.m.grant(ctx, name)
	if h == nil {
		if k.m.has("TryAcquire nil, nil") {
			return nil, nil
		}
		return k.refuse(lockclient.ErrHeld)
	}
	return k.keep(h), nil
}

func (k *memoryLocker) Do(ctx context.Context, name string, fn func(context.Context, lockclient.Hold) error) (err error) {
	h, err := k.Acquire(ctx, name)
	if err != nil || h == nil {
		return err
	}
	base := ctx
	if k.m.has("Do ignores its context") {
		base = context.WithoutCancel(ctx)
	}
	work, cancel := context.WithCancelCause(base)
	defer cancel(nil)
	defer context.AfterFunc(h.Context(), func() { cancel(context.Cause(h.Context())) })()
	if k.m.has("Do releases early") {
		defer context.AfterFunc(ctx, func() { _ = h.Release(ctx) })()
	}
	finished := false
	defer func() {
		if !finished && k.m.has("Do keeps after a panic") {
			return
		}
		if rerr := h.Release(ctx); !k.m.has("Do hides a loss") {
			err = errors.Join(err, rerr)
		}
		if !finished && k.m.has("Do swallows panics") {
			_ = recover()
		}
	}()
	err = fn(work, h)
	if k.m.has("Do runs twice") {
		err = fn(work, h)
	}
	finished = true
	if k.m.has("Do swallows errors") {
		err = nil
	}
	return err
}

func (k *memoryLocker) Close(context.Context) error {
	k.shut(lockclient.ErrClosed)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m.has("Close keeps holds") {
		return nil
	}
	for _, h := range k.holds {
		if h.finish(errors.Join(lockclient.ErrLost, lockclient.ErrClosed)) {
			h.m.free(h)
		}
	}
	return nil
}
