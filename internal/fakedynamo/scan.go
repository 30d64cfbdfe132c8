package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

func (s *Server) scan(in *dynamodb.ScanInput) (*dynamodb.ScanOutput, error) {
	segment, total := 0, 1
	if in.TotalSegments != nil || in.Segment != nil {
		if in.TotalSegments == nil || in.Segment == nil {
			return nil, invalid("The TotalSegments and the Segment parameter are required together in a parallel scan")
		}
		segment, total = int(*in.Segment), int(*in.TotalSegments)
	}
	if total < 1 || total > 1_000_000 || segment < 0 || segment >= total {
		return nil, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", segment, total)
	}
	r, err := s.prepareReading(readingInput{
		table: in.TableName, index: in.IndexName, filter: in.FilterExpression, project: in.ProjectionExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues, start: in.ExclusiveStartKey,
		limit: in.Limit, choose: in.Select,
		legacy: in.ScanFilter != nil || in.AttributesToGet != nil || in.ConditionalOperator != "",
	})
	if err != nil {
		return nil, err
	}
	p, err := s.scanPage(r, uint64(segment), uint64(total))
	if err != nil {
		return nil, err
	}
	return &dynamodb.ScanOutput{
		Items: r.give(p), Count: p.count, ScannedCount: p.scanned,
		LastEvaluatedKey: expr.CloneItem(p.last),
		ConsumedCapacity: p.capacity(in.ReturnConsumedCapacity, aws.ToString(in.TableName), in.ConsistentRead),
	}, nil
}

// scanPage reads a page of a segment: the partitions whose hash falls into it.
func (s *Server) scanPage(r *reading, segment, total uint64) (*page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.active(r.table)
	if err != nil {
		return nil, err
	}
	at, started, err := r.startKey(t)
	if err != nil {
		return nil, err
	}
	from := hashPartition(at.partition)
	p := &page{}
	for _, part := range t.scanOrder() {
		if part.hash%total != segment {
			continue
		}
		order := 1
		if started {
			order = comparePartitions(part, from)
		}
		for _, row := range part.rows {
			if order < 0 || order == 0 && row.sort <= at.sort {
				continue
			}
			if r.full(p) {
				return p, nil
			}
			r.add(p, row)
			p.last = t.keyItem(row.item)
		}
	}
	if !r.full(p) {
		p.last = nil
	}
	return p, nil
}
