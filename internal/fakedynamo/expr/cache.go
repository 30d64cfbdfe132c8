package expr

import "sync"

// cacheLimit bounds the parsed expressions of one kind. A program has few; a
// test that makes up expressions starts afresh at the limit.
const cacheLimit = 4096

// Cache parses expressions and remembers them by their text. The zero value is
// ready for use, by several goroutines at once.
type Cache struct {
	conditions  memo[conditionKey, *Condition]
	updates     memo[string, *Update]
	projections memo[string, *Projection]
}

// conditionKey tells the kinds of conditions apart: their errors differ.
type conditionKey struct {
	kind   Kind
	source string
}

// Condition parses a condition, filter or key condition.
func (c *Cache) Condition(kind Kind, source string) (*Condition, error) {
	return c.conditions.get(conditionKey{kind, source}, func() (*Condition, error) { return parseCondition(kind, source) })
}

// Update parses an update expression.
func (c *Cache) Update(source string) (*Update, error) {
	return c.updates.get(source, func() (*Update, error) { return parseUpdate(source) })
}

// Projection parses a projection expression.
func (c *Cache) Projection(source string) (*Projection, error) {
	return c.projections.get(source, func() (*Projection, error) { return parseProjection(source) })
}

// memo remembers successful results.
type memo[K comparable, T any] struct {
	mu sync.RWMutex
	m  map[K]T
}

func (m *memo[K, T]) get(key K, parse func() (T, error)) (T, error) {
	m.mu.RLock()
	v, ok := m.m[key]
	m.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := parse()
	if err != nil {
		return v, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil || len(m.m) >= cacheLimit {
		m.m = map[K]T{}
	}
	m.m[key] = v
	return v, nil
}
