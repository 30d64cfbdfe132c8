package fakedynamo

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

func (s *Server) query(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
	r, err := s.prepareReading(readingInput{
		table: in.TableName, index: in.IndexName, query: true,
		keyCondition: in.KeyConditionExpression, filter: in.FilterExpression, project: in.ProjectionExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, start: in.ExclusiveStartKey,
		limit: in.Limit, choose: in.Select,
		legacy: in.KeyConditions != nil || in.QueryFilter != nil || in.AttributesToGet != nil || in.ConditionalOperator != "",
	})
	if err != nil {
		return nil, err
	}
	p, err := s.queryPage(r, in.ScanIndexForward != nil && !*in.ScanIndexForward)
	if err != nil {
		return nil, err
	}
	return &dynamodb.QueryOutput{
		Items: r.give(p), Count: p.count, ScannedCount: p.scanned,
		LastEvaluatedKey: expr.CloneItem(p.last),
		ConsumedCapacity: p.capacity(in.ReturnConsumedCapacity, r.table, in.ConsistentRead),
	}, nil
}

// queryPage reads a page of one partition.
func (s *Server) queryPage(r *reading, backward bool) (*page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.active(r.table)
	if err != nil {
		return nil, err
	}
	keys, err := r.keyCond.KeyRange(r.env, t.partition.name, t.sort.name)
	if err != nil {
		return nil, invalidExpr(err)
	}
	if r.filter != nil {
		if name := r.filter.Mentions(r.env, t.keyNames()...); name != "" {
			return nil, invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", name)
		}
	}
	within, err := t.sortRange(keys)
	if err != nil {
		return nil, err
	}
	at, started, err := r.startKey(t)
	if err != nil {
		return nil, err
	}
	partitionKey, err := encodeKey(t.partition, expr.Item{t.partition.name: keys.Partition}, true, maxPartitionKey, "hashkey")
	if err != nil {
		return nil, err
	}
	if started && at.partition != partitionKey {
		return nil, invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	p := &page{}
	stored := t.rows[partitionKey]
	if stored == nil {
		return p, nil
	}
	rows := stored.rows
	if backward {
		rows = slices.Clone(rows)
		slices.Reverse(rows)
	}
	for _, row := range rows {
		behind := row.sort > at.sort
		if backward {
			behind = row.sort < at.sort
		}
		if started && !behind || !within(row.sort) {
			continue
		}
		if r.full(p) {
			break
		}
		r.add(p, row)
		p.last = t.keyItem(row.item)
	}
	if !r.full(p) {
		p.last = nil
	}
	return p, nil
}

// sortRange gives the test for encoded sort keys that a key condition makes.
func (t *table) sortRange(keys expr.KeyRange) (func(string) bool, error) {
	if keys.Op == "" {
		return func(string) bool { return true }, nil
	}
	bounds := make([]string, len(keys.Sort))
	for i, v := range keys.Sort {
		if expr.TypeOf(v) != string(t.sort.kind) || keys.Op == "begins_with" && t.sort.kind == types.ScalarAttributeTypeN {
			return nil, invalid("One or more parameter values were invalid: Condition parameter type does not match schema type")
		}
		text, err := keyText(v)
		if err != nil {
			return nil, invalidExpr(err)
		}
		bounds[i] = text
	}
	b := bounds[0]
	switch keys.Op {
	case "=":
		return func(k string) bool { return k == b }, nil
	case "<":
		return func(k string) bool { return k < b }, nil
	case "<=":
		return func(k string) bool { return k <= b }, nil
	case ">":
		return func(k string) bool { return k > b }, nil
	case ">=":
		return func(k string) bool { return k >= b }, nil
	case "BETWEEN":
		return func(k string) bool { return b <= k && k <= bounds[1] }, nil
	}
	return func(k string) bool { return strings.HasPrefix(k, b) }, nil
}
