package fakedynamo

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// StreamRules say how the streams of a server behave. The zero value is a service that
// has everything, throttles nobody and shows a record at once.
type StreamRules struct {
	// NoTimestamps refuses AT_TIMESTAMP, as servers from before it do.
	NoTimestamps bool
	// Children is what becomes of the filter for a shard's children.
	Children ChildFilter
	// LazyLatest makes an iterator of type LATEST take effect at its first use.
	LazyLatest bool
	// EmptyPages is how many empty pages an iterator shows before its first record,
	// unless it follows a sequence number.
	EmptyPages int
	// IteratorLife is how long an iterator is good for; 0 means 15 minutes.
	IteratorLife time.Duration
	// Delay gives the time until readers see the record that is being written, nil for
	// none. Records of a shard never overtake each other. It must not call the server.
	Delay func() time.Duration
	// Repeat is how many records before its position a page shows again if it has others.
	Repeat int
	// PageRecords and PageShards bound a page; 0 means 1,000 and 100.
	PageRecords, PageShards int
	// Shuffled lists shards in no order; Twice begins each further page of a list with
	// the last shard of the one before.
	Shuffled, Twice bool
	// EndOnOpen shows an EndingSequenceNumber on open shards too.
	EndOnOpen bool
	// ReadsPerSecond bounds GetRecords for each shard, over all readers, ListsPerSecond
	// DescribeStream for all streams; 0 means no bound. What is beyond gets ThrottleCode,
	// by default ThrottlingException, which no model of the SDK has.
	ReadsPerSecond, ListsPerSecond int
	ThrottleCode                   string
}

// ChildFilter is what a server does with the shard filter CHILD_SHARDS.
type ChildFilter uint8

// The kinds of servers.
const (
	ChildrenListed  ChildFilter = iota // the children of the shard
	ChildrenAndSelf                    // the shard itself too
	ChildrenIgnored                    // all shards: the filter is not known
	ChildrenRefused                    // ValidationException
)

// SetStreamRules changes the rules from now on.
func (s *Server) SetStreamRules(change func(*StreamRules)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.rules)
	for _, st := range s.streams {
		st.delay = s.rules.Delay
	}
}

func (r *StreamRules) throttled() error {
	code := r.ThrottleCode
	if code == "" {
		code = "ThrottlingException"
	}
	return fail(code, "Rate exceeded for shard")
}

// bucket is the allowance of calls at a rate.
type bucket struct {
	tokens float64
	filled time.Time
}

// take reports whether a call is allowed now, with room for a second's calls at once.
func (b *bucket) take(now time.Time, perSecond int) bool {
	if perSecond <= 0 {
		return true
	}
	room := float64(perSecond)
	if b.filled.IsZero() {
		b.tokens = room
	} else {
		b.tokens = min(room, b.tokens+room*now.Sub(b.filled).Seconds())
	}
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// keyRange is the part of all keys' hashes that a shard takes: from first to last.
type keyRange struct{ first, last uint64 }

var everyKey = keyRange{0, math.MaxUint64}

func (r keyRange) has(hash uint64) bool { return r.first <= hash && hash <= r.last }

// divide cuts the range into n parts.
func (r keyRange) divide(n int) []keyRange {
	parts := make([]keyRange, n)
	step := (r.last - r.first) / uint64(n)
	for i := range parts {
		parts[i] = keyRange{r.first + uint64(i)*step, r.first + uint64(i+1)*step - 1}
	}
	parts[n-1].last = r.last
	return parts
}

// hashKey spreads items over shards.
func hashKey(keys expr.Item) uint64 {
	sum := uint64(0)
	for _, v := range keys {
		h := fnv.New64a()
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			_, _ = h.Write([]byte(v.Value)) // never fails
		case *types.AttributeValueMemberN:
			_, _ = h.Write([]byte(v.Value))
		case *types.AttributeValueMemberB:
			_, _ = h.Write(v.Value)
		}
		sum ^= h.Sum64()
	}
	return mix(sum)
}

// mix spreads similar numbers over the whole range.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
