package fakedynamo

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// stream is a table's stream from being enabled to long after being disabled.
// The server's mutex guards it. Writers use append, readers the shards; how
// records are spread over shards is known to this file alone.
type stream struct {
	arn, label string
	table      string
	view       types.StreamViewType
	partition  keyAttr
	sort       keyAttr
	created    time.Time
	enabledAt  time.Time // ENABLING before
	disabled   bool
	lastSeq    uint64
	shardNo    int
	shards     []*shard // in the order in which they were made
	delay      func() time.Duration
	expired    time.Time // iterators from until then are too old
}

// shard is an ordered list of records. Positions in it count from its beginning, records
// that were trimmed included.
type shard struct {
	id       string
	parent   string
	firstSeq string // the start of its range
	lastSeq  string // the end of its range, empty while it is open
	keys     keyRange
	trimmed  int // records that are gone
	records  []record

	listedAt time.Time // no list shows it before
	unlisted bool      // no list shows it
	gone     bool      // nor can it be read
	delayed  bool      // a record was not shown at once
	reads    bucket
}

// record is a change of one item, with everything that a view may show.
type record struct {
	seq      string
	at       time.Time
	keys     expr.Item
	old, new expr.Item // nil when there was or is no item
	byTTL    bool
	shownAt  time.Time // no reader sees it before; zero: at once
	raw      *streamtypes.Record
}

// newStream makes an enabled stream with one open shard.
func newStream(arn, label string, t *table, view types.StreamViewType, now, enabledAt time.Time) *stream {
	st := &stream{
		arn: arn, label: label, table: t.name, view: view,
		partition: t.partition, sort: t.sort, created: now, enabledAt: enabledAt,
	}
	st.addShard("", "", everyKey)
	return st
}

// addShard makes an open shard; an empty id is made up.
func (st *stream) addShard(id, parent string, keys keyRange) *shard {
	st.shardNo++
	if id == "" {
		id = fmt.Sprintf("shardId-%020d-%08x", st.created.UnixMilli(), st.shardNo)
	}
	sh := &shard{id: id, parent: parent, firstSeq: st.nextSeq(), keys: keys}
	st.shards = append(st.shards, sh)
	return sh
}

// nextSeq makes sequence numbers: decimal numbers of equal length that rise.
func (st *stream) nextSeq() string {
	st.lastSeq++
	return "1" + fmt.Sprintf("%020d", st.lastSeq)
}

// append adds a record to the open shard that takes its item's key.
func (st *stream) append(r record) {
	if st.disabled {
		return
	}
	hash := hashKey(r.keys)
	for _, sh := range slices.Backward(st.shards) {
		if !sh.closed() && sh.keys.has(hash) {
			st.appendTo(sh, r)
			return
		}
	}
}

func (st *stream) appendTo(sh *shard, r record) {
	r.seq = st.nextSeq()
	if st.delay != nil {
		if d := st.delay(); d > 0 {
			r.shownAt, sh.delayed = time.Now().Add(d), true
		}
	}
	sh.records = append(sh.records, r)
}

// disable ends the stream; what it has stays readable.
func (st *stream) disable() {
	if st.disabled {
		return
	}
	st.disabled = true
	for _, sh := range st.shards {
		if sh.lastSeq == "" {
			sh.lastSeq = st.nextSeq()
		}
	}
}

// shard finds a shard by its id.
func (st *stream) shard(id string) (*shard, bool) {
	for _, sh := range st.shards {
		if sh.id == id {
			return sh, true
		}
	}
	return nil, false
}

// closed tells whether no record will be added to the shard any more.
func (sh *shard) closed() bool { return sh.lastSeq != "" }

// end is the position behind the last record.
func (sh *shard) end() int { return sh.trimmed + len(sh.records) }

// seek gives the position of the first record that is not before seq, or with
// after the first one behind it.
func (sh *shard) seek(seq string, after bool) int {
	return sh.trimmed + sort.Search(len(sh.records), func(i int) bool {
		order := compareSeq(sh.records[i].seq, seq)
		return order > 0 || order == 0 && !after
	})
}

// seekTime gives the position of the first record that was made at or after an instant.
func (sh *shard) seekTime(at time.Time) int {
	return sh.trimmed + sort.Search(len(sh.records), func(i int) bool { return !sh.records[i].at.Before(at) })
}

// visible is the position behind the last record that readers see.
func (sh *shard) visible(now time.Time) int {
	if !sh.delayed {
		return sh.end()
	}
	for i := range sh.records {
		if sh.records[i].shownAt.After(now) {
			return sh.trimmed + i
		}
	}
	return sh.end()
}

// read gives the records between two positions, none of which may be trimmed.
func (sh *shard) read(from, to int) []record {
	to = min(to, sh.end()) - sh.trimmed
	from = min(max(from-sh.trimmed, 0), max(to, 0))
	return sh.records[from:max(to, from)]
}

// compareSeq orders sequence numbers, which are decimal numbers of any length.
func compareSeq(a, b string) int {
	a, b = trimZeros(a), trimZeros(b)
	switch {
	case len(a) != len(b):
		return len(a) - len(b)
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func trimZeros(s string) string {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	return s
}

// eventID identifies a record over all streams.
func (st *stream) eventID(r record) string {
	return strconv.FormatInt(st.created.UnixNano(), 16) + r.seq
}
