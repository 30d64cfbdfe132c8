package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// describe fills in the table and the key of a request, as far as they can be
// told.
func (s *Server) describe(r *Request) {
	table, attrs := target(r.Input)
	if table == nil {
		r.Table, r.Shard = s.streamTarget(r.Input)
		return
	}
	name, err := tableName(table)
	if err != nil {
		r.Table = *table
		return
	}
	r.Table = name
	if attrs == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.lookup(name); t != nil {
		r.Key = t.plainKey(attrs)
	}
}

// target finds the table name and the key of an input.
func target(in any) (table *string, attrs expr.Item) {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		return in.TableName, in.Key
	case *dynamodb.GetItemInput:
		return in.TableName, in.Key
	case *dynamodb.DeleteItemInput:
		return in.TableName, in.Key
	case *dynamodb.PutItemInput:
		return in.TableName, in.Item
	case *dynamodb.QueryInput:
		return in.TableName, nil
	case *dynamodb.ScanInput:
		return in.TableName, nil
	case *dynamodb.CreateTableInput:
		return in.TableName, nil
	case *dynamodb.DescribeTableInput:
		return in.TableName, nil
	case *dynamodb.UpdateTableInput:
		return in.TableName, nil
	case *dynamodb.DeleteTableInput:
		return in.TableName, nil
	case *dynamodb.DescribeTimeToLiveInput:
		return in.TableName, nil
	case *dynamodb.UpdateTimeToLiveInput:
		return in.TableName, nil
	case *dynamodbstreams.ListStreamsInput:
		return in.TableName, nil
	case *dynamodb.TransactWriteItemsInput:
		return transactionTarget(in)
	}
	return nil, nil
}

// transactionTarget is the target of a transaction's first action.
func transactionTarget(in *dynamodb.TransactWriteItemsInput) (table *string, attrs expr.Item) {
	if len(in.TransactItems) == 0 {
		return nil, nil
	}
	switch a := in.TransactItems[0]; {
	case a.Update != nil:
		return a.Update.TableName, a.Update.Key
	case a.Put != nil:
		return a.Put.TableName, a.Put.Item
	case a.Delete != nil:
		return a.Delete.TableName, a.Delete.Key
	case a.ConditionCheck != nil:
		return a.ConditionCheck.TableName, a.ConditionCheck.Key
	}
	return nil, nil
}

// streamTarget is the table of the stream that an input is about, and the shard.
func (s *Server) streamTarget(in any) (table, shard string) {
	var arn *string
	switch in := in.(type) {
	case *dynamodbstreams.DescribeStreamInput:
		arn = in.StreamArn
	case *dynamodbstreams.GetShardIteratorInput:
		arn = in.StreamArn
		if in.ShardId != nil {
			shard = *in.ShardId
		}
	case *dynamodbstreams.GetRecordsInput:
		if it, err := decodeIterator(in.ShardIterator); err == nil {
			arn, shard = &it.arn, it.shard
		}
	}
	if arn == nil {
		return "", shard
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[*arn]; st != nil {
		return st.table, shard
	}
	return "", shard
}
