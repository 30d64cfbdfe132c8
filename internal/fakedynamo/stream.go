package fakedynamo

import (
	"fmt"
	"sort"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
	shards     []*shard
}

// shard is an ordered list of records.
type shard struct {
	id       string
	parent   string
	firstSeq string // the start of its range
	lastSeq  string // the end of its range, empty while it is open
	records  []record
}

// record is a change of one item, with everything that a view may show.
type record struct {
	seq      string
	at       time.Time
	keys     expr.Item
	old, new expr.Item // nil when there was or is no item
	byTTL    bool
}

// newStream makes an enabled stream with one open shard.
func newStream(arn, label string, t *table, view types.StreamViewType, now, enabledAt time.Time) *stream {
	st := &stream{
		arn: arn, label: label, table: t.name, view: view,
		partition: t.partition, sort: t.sort, created: now, enabledAt: enabledAt,
	}
	st.shards = []*shard{{
		id:       fmt.Sprintf("shardId-%020d-%08x", now.UnixMilli(), len(st.shards)+1),
		firstSeq: st.nextSeq(),
	}}
	return st
}

// nextSeq makes sequence numbers: decimal numbers of equal length that rise.
func (st *stream) nextSeq() string {
	st.lastSeq++
	return "1" + fmt.Sprintf("%020d", st.lastSeq)
}

// append adds a record to the open shard.
func (st *stream) append(r record) {
	if st.disabled {
		return
	}
	r.seq = st.nextSeq()
	open := st.shards[len(st.shards)-1]
	open.records = append(open.records, r)
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
func (sh *shard) end() int { return len(sh.records) }

// seek gives the position of the first record that is not before seq, or with
// after the first one behind it.
func (sh *shard) seek(seq string, after bool) int {
	return sort.Search(sh.end(), func(i int) bool {
		order := compareSeq(sh.records[i].seq, seq)
		return order > 0 || order == 0 && !after
	})
}

// read gives up to limit records from a position on.
func (sh *shard) read(from, limit int) []record {
	from = min(max(from, 0), sh.end())
	return sh.records[from:min(from+limit, sh.end())]
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
