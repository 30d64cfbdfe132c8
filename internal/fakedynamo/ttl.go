package fakedynamo

import (
	"math/big"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// oldestTTL is the age beyond which the service leaves an item alone.
const oldestTTL = 5 * 365 * 24 * time.Hour

func (s *Server) describeTimeToLive(in *dynamodb.DescribeTimeToLiveInput) (*dynamodb.DescribeTimeToLiveOutput, error) {
	name, err := tableName(in.TableName)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.active(name)
	if err != nil {
		return nil, err
	}
	d := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	if t.ttl != "" {
		d.TimeToLiveStatus, d.AttributeName = types.TimeToLiveStatusEnabled, aws.String(t.ttl)
	}
	return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d}, nil
}

func (s *Server) updateTimeToLive(in *dynamodb.UpdateTimeToLiveInput) (*dynamodb.UpdateTimeToLiveOutput, error) {
	name, err := tableName(in.TableName)
	if err != nil {
		return nil, err
	}
	spec := in.TimeToLiveSpecification
	if spec == nil || spec.Enabled == nil || aws.ToString(spec.AttributeName) == "" {
		return nil, invalid("1 validation error detected: Value null at 'timeToLiveSpecification' failed to satisfy constraint: Member must not be null")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.active(name)
	if err != nil {
		return nil, err
	}
	switch attr := *spec.AttributeName; {
	case *spec.Enabled && t.ttl == attr:
		return nil, invalid("TimeToLive is already enabled")
	case t.ttl != "" && t.ttl != attr:
		return nil, invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	case *spec.Enabled:
		t.ttl = attr
	case t.ttl == "":
		return nil, invalid("TimeToLive is already disabled")
	default:
		t.ttl = ""
	}
	return &dynamodb.UpdateTimeToLiveOutput{TimeToLiveSpecification: &types.TimeToLiveSpecification{
		AttributeName: aws.String(*spec.AttributeName), Enabled: aws.Bool(*spec.Enabled),
	}}, nil
}

// ExpireTTL deletes the items of a table whose time to live is over by the
// server's clock, as the service does some time after that. Their stream
// records name the service as the author. It returns how many were deleted,
// and an error when there is no such table or its TTL is not enabled.
func (s *Server) ExpireTTL(table string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.active(table)
	if err != nil {
		return 0, err
	}
	if t.ttl == "" {
		return 0, invalid("TimeToLive is not enabled on table %s", table)
	}
	n, now := 0, s.Now()
	for _, p := range t.scanOrder() {
		for _, r := range slices.Clone(p.rows) {
			if expired(r.item, t.ttl, now) {
				s.commit(change{table: t, key: rowKey{p.key, r.sort}, old: r.item}, true)
				n++
			}
		}
	}
	return n, nil
}

// expired tells whether the TTL attribute is a number of seconds in the past.
func expired(item expr.Item, attr string, now time.Time) bool {
	v, ok := item[attr].(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	f, ok := new(big.Rat).SetString(v.Value)
	if !ok {
		return false
	}
	before := func(t time.Time) bool { return f.Cmp(new(big.Rat).SetInt64(t.Unix())) <= 0 }
	return before(now) && !before(now.Add(-oldestTTL))
}
