package fakedynamo

import (
	"context"
	"errors"
	"net/http"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// API is the front without HTTP and JSON, for very many operations. Its
// methods have the shapes of the SDK's clients and give the same outputs and
// errors, the server's time in the result's metadata included. There are no
// retries, no signing and no checks of inputs by the client; the options
// given to a call are ignored. What is passed in may be changed after a call
// has returned.
type API struct{ server *Server }

// API gives the front without HTTP.
func (s *Server) API() *API { return &API{server: s} }

// invoke carries an operation out.
func invoke[In, Out any](ctx context.Context, a *API, name string, in *In) (*Out, error) {
	if in == nil {
		in = new(In)
	}
	o := operations[name]
	res := a.server.serve(ctx, o, &Request{Op: name, Input: in})
	if res.err == nil && res.truncate {
		res.err = &smithy.DeserializationError{Err: errTruncated}
	}
	if res.err != nil {
		return nil, &smithy.OperationError{ServiceID: string(o.service), OperationName: name, Err: a.server.clientError(res.err, o.service)}
	}
	a.server.addMetadata(o.metadata(res.out))
	return res.out.(*Out), nil
}

// clientError gives an error the layers that the SDK's client gives it.
func (s *Server) clientError(err error, svc service) error {
	var f *failure
	var broken *smithy.DeserializationError
	switch {
	case errors.As(err, &f):
		h := s.header()
		return &awshttp.ResponseError{
			RequestID: h.Get("X-Amzn-Requestid"),
			ResponseError: &smithyhttp.ResponseError{
				Response: &smithyhttp.Response{Response: &http.Response{StatusCode: f.status, Header: h, Body: http.NoBody}},
				Err:      f.sdk(svc),
			},
		}
	case errors.As(err, &broken):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &smithy.CanceledError{Err: err}
	}
	return &smithyhttp.RequestSendError{Err: err}
}

// addMetadata records the server's time where the SDK's clients record it. The
// SDK keeps the key to itself, so its own middleware does it. In virtual time
// many requests share an instant, so the last metadata is kept.
func (s *Server) addMetadata(m *middleware.Metadata) {
	if s.noDate.Load() {
		return
	}
	now, sec := time.Now(), s.second()
	if last := s.lastMetadata.Load(); last != nil && last.at == now && last.second == sec {
		*m = last.metadata.Clone()
		return
	}
	timing := awsmiddleware.RecordResponseTiming{DisableClockSkewCorrection: true}
	_, md, err := timing.HandleDeserialize(context.Background(), middleware.DeserializeInput{}, sec.deserialize)
	if err != nil {
		return
	}
	if time.Now() == now { // only in virtual time
		s.lastMetadata.Store(&timedMetadata{at: now, second: sec, metadata: md.Clone()})
	}
	*m = md
}

// timedMetadata is the metadata of results at one instant.
type timedMetadata struct {
	at       time.Time
	second   *second
	metadata middleware.Metadata
}

// UpdateItem is the operation of that name.
func (a *API) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return invoke[dynamodb.UpdateItemInput, dynamodb.UpdateItemOutput](ctx, a, "UpdateItem", in)
}

// CreateTable is the operation of that name.
func (a *API) CreateTable(ctx context.Context, in *dynamodb.CreateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error) {
	return invoke[dynamodb.CreateTableInput, dynamodb.CreateTableOutput](ctx, a, "CreateTable", in)
}

// DescribeTable is the operation of that name.
func (a *API) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return invoke[dynamodb.DescribeTableInput, dynamodb.DescribeTableOutput](ctx, a, "DescribeTable", in)
}

// UpdateTable is the operation of that name.
func (a *API) UpdateTable(ctx context.Context, in *dynamodb.UpdateTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTableOutput, error) {
	return invoke[dynamodb.UpdateTableInput, dynamodb.UpdateTableOutput](ctx, a, "UpdateTable", in)
}

// DeleteTable is the operation of that name.
func (a *API) DeleteTable(ctx context.Context, in *dynamodb.DeleteTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteTableOutput, error) {
	return invoke[dynamodb.DeleteTableInput, dynamodb.DeleteTableOutput](ctx, a, "DeleteTable", in)
}

// ListTables is the operation of that name.
func (a *API) ListTables(ctx context.Context, in *dynamodb.ListTablesInput, _ ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error) {
	return invoke[dynamodb.ListTablesInput, dynamodb.ListTablesOutput](ctx, a, "ListTables", in)
}

// DescribeTimeToLive is the operation of that name.
func (a *API) DescribeTimeToLive(ctx context.Context, in *dynamodb.DescribeTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error) {
	return invoke[dynamodb.DescribeTimeToLiveInput, dynamodb.DescribeTimeToLiveOutput](ctx, a, "DescribeTimeToLive", in)
}

// UpdateTimeToLive is the operation of that name.
func (a *API) UpdateTimeToLive(ctx context.Context, in *dynamodb.UpdateTimeToLiveInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error) {
	return invoke[dynamodb.UpdateTimeToLiveInput, dynamodb.UpdateTimeToLiveOutput](ctx, a, "UpdateTimeToLive", in)
}

// GetItem is the operation of that name.
func (a *API) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return invoke[dynamodb.GetItemInput, dynamodb.GetItemOutput](ctx, a, "GetItem", in)
}

// PutItem is the operation of that name.
func (a *API) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return invoke[dynamodb.PutItemInput, dynamodb.PutItemOutput](ctx, a, "PutItem", in)
}

// DeleteItem is the operation of that name.
func (a *API) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return invoke[dynamodb.DeleteItemInput, dynamodb.DeleteItemOutput](ctx, a, "DeleteItem", in)
}

// TransactWriteItems is the operation of that name.
func (a *API) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return invoke[dynamodb.TransactWriteItemsInput, dynamodb.TransactWriteItemsOutput](ctx, a, "TransactWriteItems", in)
}

// DescribeStream is the operation of that name.
func (a *API) DescribeStream(ctx context.Context, in *dynamodbstreams.DescribeStreamInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.DescribeStreamOutput, error) {
	return invoke[dynamodbstreams.DescribeStreamInput, dynamodbstreams.DescribeStreamOutput](ctx, a, "DescribeStream", in)
}

// ListStreams is the operation of that name.
func (a *API) ListStreams(ctx context.Context, in *dynamodbstreams.ListStreamsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.ListStreamsOutput, error) {
	return invoke[dynamodbstreams.ListStreamsInput, dynamodbstreams.ListStreamsOutput](ctx, a, "ListStreams", in)
}

// GetShardIterator is the operation of that name.
func (a *API) GetShardIterator(ctx context.Context, in *dynamodbstreams.GetShardIteratorInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetShardIteratorOutput, error) {
	return invoke[dynamodbstreams.GetShardIteratorInput, dynamodbstreams.GetShardIteratorOutput](ctx, a, "GetShardIterator", in)
}

// GetRecords is the operation of that name.
func (a *API) GetRecords(ctx context.Context, in *dynamodbstreams.GetRecordsInput, _ ...func(*dynamodbstreams.Options)) (*dynamodbstreams.GetRecordsOutput, error) {
	return invoke[dynamodbstreams.GetRecordsInput, dynamodbstreams.GetRecordsOutput](ctx, a, "GetRecords", in)
}

// Query is the operation of that name.
func (a *API) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return invoke[dynamodb.QueryInput, dynamodb.QueryOutput](ctx, a, "Query", in)
}

// Scan is the operation of that name.
func (a *API) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return invoke[dynamodb.ScanInput, dynamodb.ScanOutput](ctx, a, "Scan", in)
}
