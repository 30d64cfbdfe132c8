package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// reading is what Query and Scan have in common: a page of items that is
// filtered and projected.
type reading struct {
	table     string
	env       expr.Env
	keyCond   *expr.Condition  // of a query
	filter    *expr.Condition  // nil for none
	project   *expr.Projection // nil for none
	limit     int              // of items looked at
	bytes     int
	start     expr.Item // exclusive; nil to begin at the beginning
	countOnly bool
}

// readingInput is what the inputs of Query and Scan have in common.
type readingInput struct {
	table, index                  *string
	keyCondition, filter, project *string
	names                         map[string]string
	values, start                 expr.Item
	limit                         *int32
	choose                        types.Select
	query, legacy                 bool
}

// prepareReading checks what can be checked without the table.
func (s *Server) prepareReading(in readingInput) (*reading, error) {
	name, err := tableName(in.table)
	if err != nil {
		return nil, err
	}
	r := &reading{table: name, bytes: int(s.pageBytes.Load()), countOnly: in.choose == types.SelectCount}
	switch {
	case in.legacy:
		return nil, errLegacy
	case in.index != nil:
		return nil, invalid("The table does not have the specified index: %s", *in.index)
	case in.query && in.keyCondition == nil:
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	case in.limit != nil && *in.limit < 1:
		return nil, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", *in.limit)
	case in.choose == types.SelectAllProjectedAttributes:
		return nil, invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	case in.choose == types.SelectSpecificAttributes && in.project == nil:
		return nil, invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	case in.project != nil && in.choose != "" && in.choose != types.SelectSpecificAttributes:
		return nil, invalid("Cannot specify the ProjectionExpression when choosing to get %s", in.choose)
	}
	if in.limit != nil {
		r.limit = int(*in.limit)
	}
	if err := r.parse(&s.cache, in); err != nil {
		return nil, err
	}
	if in.start != nil {
		if r.start, err = expr.CheckItem(in.start); err != nil {
			return nil, invalid("The provided starting key is invalid: %s", err)
		}
	}
	return r, nil
}

// parse parses the expressions of a reading.
func (r *reading) parse(cache *expr.Cache, in readingInput) (err error) {
	var exprs []expr.Expression
	if in.keyCondition != nil {
		if r.keyCond, err = cache.Condition(expr.KindKeyCondition, *in.keyCondition); err != nil {
			return invalidExpr(err)
		}
		exprs = append(exprs, r.keyCond)
	}
	if in.filter != nil {
		if r.filter, err = cache.Condition(expr.KindFilter, *in.filter); err != nil {
			return invalidExpr(err)
		}
		exprs = append(exprs, r.filter)
	}
	if in.project != nil {
		if r.project, err = cache.Projection(*in.project); err != nil {
			return invalidExpr(err)
		}
		exprs = append(exprs, r.project)
	}
	r.env, err = newEnv(in.names, in.values, exprs)
	return err
}

// page collects the items of one page.
type page struct {
	items   []expr.Item
	count   int32
	scanned int32
	bytes   int
	last    expr.Item // key of the last item looked at, nil at the end
}

// full tells whether the page takes no further item.
func (r *reading) full(p *page) bool {
	return r.limit > 0 && int(p.scanned) >= r.limit || p.bytes >= r.bytes
}

// add looks at an item. What it keeps still belongs to the table.
func (r *reading) add(p *page, stored row) {
	p.scanned++
	p.bytes += stored.size
	if r.filter != nil && !r.filter.Match(r.env, stored.item) {
		return
	}
	p.count++
	switch {
	case r.countOnly:
	case r.project != nil:
		p.items = append(p.items, r.project.Apply(r.env, stored.item))
	default:
		p.items = append(p.items, stored.item)
	}
}

// give copies the page's items for the caller; nil when only counting.
func (r *reading) give(p *page) []map[string]types.AttributeValue {
	if r.countOnly {
		return nil
	}
	out := make([]map[string]types.AttributeValue, len(p.items))
	for i, item := range p.items {
		out[i] = expr.CloneItem(item)
	}
	return out
}

// startKey encodes the exclusive start key; ok is false when there is none.
func (r *reading) startKey(t *table) (k rowKey, ok bool, err error) {
	if r.start == nil {
		return rowKey{}, false, nil
	}
	if k, err = t.keyOf(r.start, true); err != nil {
		return rowKey{}, false, invalid("The provided starting key is invalid: %s", err.Error())
	}
	return k, true, nil
}

// keyNames gives the names of the key attributes.
func (t *table) keyNames() []string {
	if t.sort.name == "" {
		return []string{t.partition.name}
	}
	return []string{t.partition.name, t.sort.name}
}

func (p *page) capacity(want types.ReturnConsumedCapacity, table string, consistent *bool) *types.ConsumedCapacity {
	return consumed(want, table, func() float64 { return readUnits(p.bytes, consistent) })
}
