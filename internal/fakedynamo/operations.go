package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/middleware"
)

// service tells the two APIs apart: their errors have different Go types.
type service string

const (
	serviceDB      service = dynamodb.ServiceID
	serviceStreams service = dynamodbstreams.ServiceID
)

// operation is an operation of the API, whichever front it came through.
type operation struct {
	service service
	// newInput makes an empty input to decode a request into.
	newInput func() any
	// apply carries the operation out on the tables. It never waits.
	apply func(s *Server, in any) (any, error)
	// metadata gives the place for the result's metadata in an output.
	metadata func(out any) *middleware.Metadata
}

func op[In, Out any](svc service, apply func(*Server, *In) (*Out, error), metadata func(*Out) *middleware.Metadata) operation {
	return operation{
		service:  svc,
		newInput: func() any { return new(In) },
		apply: func(s *Server, in any) (any, error) {
			out, err := apply(s, in.(*In))
			if err != nil {
				return nil, err
			}
			return out, nil
		},
		metadata: func(out any) *middleware.Metadata { return metadata(out.(*Out)) },
	}
}

// operations has all operations by name; the names of the two services differ.
var operations = map[string]operation{
	"CreateTable":        op(serviceDB, (*Server).createTable, func(o *dynamodb.CreateTableOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"DescribeTable":      op(serviceDB, (*Server).describeTable, func(o *dynamodb.DescribeTableOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"UpdateTable":        op(serviceDB, (*Server).updateTable, func(o *dynamodb.UpdateTableOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"DeleteTable":        op(serviceDB, (*Server).deleteTable, func(o *dynamodb.DeleteTableOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"ListTables":         op(serviceDB, (*Server).listTables, func(o *dynamodb.ListTablesOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"DescribeTimeToLive": op(serviceDB, (*Server).describeTimeToLive, func(o *dynamodb.DescribeTimeToLiveOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"UpdateTimeToLive":   op(serviceDB, (*Server).updateTimeToLive, func(o *dynamodb.UpdateTimeToLiveOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"GetItem":            op(serviceDB, (*Server).getItem, func(o *dynamodb.GetItemOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"PutItem":            op(serviceDB, (*Server).putItem, func(o *dynamodb.PutItemOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"UpdateItem":         op(serviceDB, (*Server).updateItem, func(o *dynamodb.UpdateItemOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"DeleteItem":         op(serviceDB, (*Server).deleteItem, func(o *dynamodb.DeleteItemOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"Query":              op(serviceDB, (*Server).query, func(o *dynamodb.QueryOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"Scan":               op(serviceDB, (*Server).scan, func(o *dynamodb.ScanOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"TransactWriteItems": op(serviceDB, (*Server).transactWriteItems, func(o *dynamodb.TransactWriteItemsOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"DescribeStream":     op(serviceStreams, (*Server).describeStream, func(o *dynamodbstreams.DescribeStreamOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"ListStreams":        op(serviceStreams, (*Server).listStreams, func(o *dynamodbstreams.ListStreamsOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"GetShardIterator":   op(serviceStreams, (*Server).getShardIterator, func(o *dynamodbstreams.GetShardIteratorOutput) *middleware.Metadata { return &o.ResultMetadata }),
	"GetRecords":         op(serviceStreams, (*Server).getRecords, func(o *dynamodbstreams.GetRecordsOutput) *middleware.Metadata { return &o.ResultMetadata }),
}
