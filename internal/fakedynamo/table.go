package fakedynamo

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// table is a table with its items. The server's mutex guards it.
type table struct {
	name, arn, id   string
	partition, sort keyAttr
	created         time.Time
	readyAt         time.Time // CREATING or UPDATING before
	updating        bool      // what it is before readyAt
	deleteAt        time.Time // zero, or DELETING until then

	stream     *stream // the latest one, enabled or not
	ttl        string  // attribute, empty when disabled
	rows       map[string]*partition
	order      []*partition // for scans; nil when it must be made anew
	count      int
	totalBytes int
}

// partition holds the items with one partition key, in the order of their sort keys.
type partition struct {
	key  string
	hash uint64
	rows []row
}

// row is a stored item. Items are never changed in place.
type row struct {
	sort string
	item expr.Item
	size int
}

// hashPartition makes an empty partition.
func hashPartition(key string) *partition {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return &partition{key: key, hash: h.Sum64()}
}

func (p *partition) find(sortKey string) (int, bool) {
	return slices.BinarySearchFunc(p.rows, sortKey, func(r row, k string) int { return strings.Compare(r.sort, k) })
}

// get gives the item at a key, nil when there is none.
func (t *table) get(k rowKey) expr.Item {
	p := t.rows[k.partition]
	if p == nil {
		return nil
	}
	if i, ok := p.find(k.sort); ok {
		return p.rows[i].item
	}
	return nil
}

// put stores an item that has the given size.
func (t *table) put(k rowKey, item expr.Item, size int) {
	p := t.rows[k.partition]
	if p == nil {
		p = hashPartition(k.partition)
		t.rows[k.partition] = p
		t.order = nil
	}
	i, ok := p.find(k.sort)
	if ok {
		t.totalBytes += size - p.rows[i].size
		p.rows[i].item, p.rows[i].size = item, size
		return
	}
	p.rows = slices.Insert(p.rows, i, row{sort: k.sort, item: item, size: size})
	t.count++
	t.totalBytes += size
}

// remove deletes the item at a key, if there is one.
func (t *table) remove(k rowKey) {
	p := t.rows[k.partition]
	if p == nil {
		return
	}
	i, ok := p.find(k.sort)
	if !ok {
		return
	}
	t.count--
	t.totalBytes -= p.rows[i].size
	p.rows = slices.Delete(p.rows, i, i+1)
	if len(p.rows) == 0 {
		delete(t.rows, k.partition)
		t.order = nil
	}
}

// scanOrder gives all partitions in the order of a scan: by hash.
func (t *table) scanOrder() []*partition {
	if t.order == nil {
		t.order = slices.SortedFunc(maps.Values(t.rows), comparePartitions)
	}
	return t.order
}

func comparePartitions(a, b *partition) int {
	switch {
	case a.hash < b.hash:
		return -1
	case a.hash > b.hash:
		return 1
	}
	return strings.Compare(a.key, b.key)
}

// status is the table's status at a time.
func (t *table) status(now time.Time) types.TableStatus {
	switch {
	case !t.deleteAt.IsZero():
		return types.TableStatusDeleting
	case !now.Before(t.readyAt):
		return types.TableStatusActive
	case t.updating:
		return types.TableStatusUpdating
	}
	return types.TableStatusCreating
}

// tableName takes a name out of a name or an ARN.
func tableName(nameOrARN *string) (string, error) {
	if nameOrARN == nil {
		return "", invalid("1 validation error detected: Value null at 'tableName' failed to satisfy constraint: Member must not be null")
	}
	name := *nameOrARN
	if strings.HasPrefix(name, "arn:") {
		_, name, _ = strings.Cut(name, ":table/")
		name, _, _ = strings.Cut(name, "/")
	}
	switch {
	case len(name) < 3:
		return "", invalid("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3", name)
	case len(name) > 255:
		return "", invalid("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: Member must have length less than or equal to 255", name)
	case !allNameBytes(name):
		return "", invalid("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+", name)
	}
	return name, nil
}

func allNameBytes(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// lookup gives a table that is there in any status; the mutex is held.
func (s *Server) lookup(name string) *table {
	t := s.tables[name]
	if t != nil && !t.deleteAt.IsZero() && !time.Now().Before(t.deleteAt) {
		delete(s.tables, name)
		return nil
	}
	return t
}

// active gives a table whose items can be used; the mutex is held.
func (s *Server) active(name string) (*table, error) {
	t := s.lookup(name)
	if t == nil || t.status(time.Now()) == types.TableStatusCreating || !t.deleteAt.IsZero() {
		return nil, fail(codeNotFound, "Requested resource not found")
	}
	return t, nil
}
