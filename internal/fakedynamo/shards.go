package fakedynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Shards controls the shards of a table's latest stream: it does what the service does
// to them over hours, at once. Its methods do nothing, and say so, when there is no such
// table, stream or shard.
type Shards struct {
	server *Server
	table  string
}

// Shards gives control over the stream of a table.
func (s *Server) Shards(table string) Shards { return Shards{server: s, table: table} }

// Never is the delay of a shard that no list ever shows.
const Never time.Duration = -1

// edit runs f on a shard with the mutex held.
func (c Shards) edit(id string, f func(st *stream, sh *shard)) bool {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	st := c.stream()
	if st == nil {
		return false
	}
	sh, ok := st.shard(id)
	if ok {
		f(st, sh)
	}
	return ok
}

// stream is the table's latest stream, nil for none; the mutex is held.
func (c Shards) stream() *stream {
	if t := c.server.lookup(c.table); t != nil {
		return t.stream
	}
	return nil
}

// list gives the ids of the shards that pass a test, in the order they were made.
func (c Shards) list(want func(*shard) bool) (ids []string) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	st := c.stream()
	if st == nil {
		return nil
	}
	for _, sh := range st.shards {
		if want(sh) {
			ids = append(ids, sh.id)
		}
	}
	return ids
}

// Open lists the open shards, oldest first.
func (c Shards) Open() []string { return c.list(func(sh *shard) bool { return !sh.closed() }) }

// Closed lists the closed shards that can still be read, oldest first.
func (c Shards) Closed() []string {
	return c.list(func(sh *shard) bool { return sh.closed() && !sh.gone })
}

// ListedAt is the instant from which on lists show a shard: the zero time for always,
// and false for never.
func (c Shards) ListedAt(id string) (at time.Time, ever bool) {
	ok := c.edit(id, func(_ *stream, sh *shard) { at, ever = sh.listedAt, !sh.unlisted && !sh.gone })
	return at, ok && ever
}

// Of gives the id of the open shard that takes the records of an item.
func (c Shards) Of(key map[string]streamtypes.AttributeValue) (id string) {
	hash := hashKey(tableItem(key))
	ids := c.list(func(sh *shard) bool { return !sh.closed() && sh.keys.has(hash) })
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

// Rotate closes an open shard and gives it one child for each delay, which share its
// keys; a child is listed after its delay. Without a delay there is one child, listed at
// once.
func (c Shards) Rotate(id string, listedAfter ...time.Duration) (children []string) {
	if len(listedAfter) == 0 {
		listedAfter = []time.Duration{0}
	}
	c.edit(id, func(st *stream, sh *shard) {
		if sh.closed() || st.disabled {
			return
		}
		sh.lastSeq = st.nextSeq()
		for i, keys := range sh.keys.divide(len(listedAfter)) {
			child := st.addShard("", id, keys)
			child.listAfter(listedAfter[i])
			children = append(children, child.id)
		}
	})
	return children
}

func (sh *shard) listAfter(d time.Duration) {
	switch {
	case d == Never:
		sh.unlisted = true
	case d > 0:
		sh.listedAt = time.Now().Add(d)
	}
}

// Add makes an open shard of the given id and parent that takes records by Append only.
func (c Shards) Add(id, parent string, listedAfter time.Duration) bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	st := c.stream()
	if st == nil {
		return false
	}
	st.addShard(id, parent, keyRange{1, 0}).listAfter(listedAfter)
	return true
}

// Close ends a shard that gets no child.
func (c Shards) Close(id string) bool {
	return c.edit(id, func(st *stream, sh *shard) {
		if !sh.closed() {
			sh.lastSeq = st.nextSeq()
		}
	})
}

// List sets whether lists show a shard, whatever its delay.
func (c Shards) List(id string, listed bool) bool {
	return c.edit(id, func(_ *stream, sh *shard) { sh.unlisted, sh.listedAt = !listed, time.Time{} })
}

// Remove makes a shard vanish with its records: no list shows it and no call finds it.
func (c Shards) Remove(id string) bool {
	return c.edit(id, func(_ *stream, sh *shard) { sh.gone = true })
}

// Restore brings a removed shard back.
func (c Shards) Restore(id string) bool {
	return c.edit(id, func(_ *stream, sh *shard) { sh.gone = false })
}

// Trim drops the records of all shards that are older than age.
func (c Shards) Trim(age time.Duration) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	st := c.stream()
	if st == nil {
		return
	}
	horizon := s.Now().Add(-age)
	for _, sh := range st.shards {
		n := sh.seekTime(horizon) - sh.trimmed
		sh.trimmed += n
		sh.records = append([]record(nil), sh.records[n:]...)
	}
}

// ExpireIterators makes every iterator that was given out so far too old.
func (c Shards) ExpireIterators() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if st := c.stream(); st != nil {
		st.expired = time.Now()
	}
}

// Append puts a record into an open shard as it is, whatever the table holds. It gives
// the record's sequence number and, where it has none, its time; an empty id is the shard
// that takes its key.
func (c Shards) Append(id string, rec streamtypes.Record) bool {
	done := false
	if id == "" && rec.Dynamodb != nil {
		id = c.Of(rec.Dynamodb.Keys)
	}
	c.edit(id, func(st *stream, sh *shard) {
		if sh.closed() || st.disabled {
			return
		}
		now := c.server.Now()
		own := streamtypes.StreamRecord{}
		if rec.Dynamodb != nil {
			own = *rec.Dynamodb
		}
		if own.ApproximateCreationDateTime == nil {
			own.ApproximateCreationDateTime = aws.Time(now.UTC().Truncate(time.Second))
		}
		rec.Dynamodb = &own
		st.appendTo(sh, record{at: now, raw: &rec})
		own.SequenceNumber = aws.String(sh.records[len(sh.records)-1].seq)
		done = true
	})
	return done
}
