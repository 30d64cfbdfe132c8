package fakedynamo

import (
	"context"
	"time"
)

// Request is what an interceptor sees of a request.
type Request struct {
	// Op is the name of the operation, such as "UpdateItem" or "GetRecords".
	Op string
	// Table is the name of the table, or the table that a stream belongs to.
	// TransactWriteItems has the table of its first action.
	Table string
	// Key is the text of the item's key: the value of the key attribute, or two
	// values joined with "/"; empty for operations on no single item.
	Key string
	// Shard is the id of the shard that GetShardIterator or GetRecords is about.
	Shard string
	// Input is the SDK's input, such as *dynamodb.UpdateItemInput. It must not
	// be changed.
	Input any
	// Number counts all requests of the server in the order of their arrival,
	// from 1.
	Number int64

	refused error // what the front found wrong, nil for nothing
}

// Fault says what goes wrong with a request. The zero value is no fault. A
// request passes these stages, and each of the fields takes effect in its place:
//
//  1. Hold, DelayRequest
//  2. DropRequest, ApplyLate, Reset, TransactionConflict, Error (not AfterApply)
//  3. the request is applied
//  4. HoldResponse, DelayResponse
//  5. DropResponse, Error and Reset (with AfterApply), TruncateBody
//
// Every wait ends with the request's context, or with [Server.Close].
type Fault struct {
	// Hold keeps the request back until the channel is closed or gives a value.
	Hold <-chan struct{}
	// DelayRequest passes before the request is applied.
	DelayRequest time.Duration
	// DropRequest loses the request: it is never applied, and the caller waits
	// until its context ends.
	DropRequest bool
	// ApplyLate looks to the caller like DropRequest, but the request is applied
	// so much later, whatever has become of the caller.
	ApplyLate time.Duration
	// Reset gives the caller a broken connection in place of the endless wait of
	// DropRequest, ApplyLate and DropResponse. Alone it is like DropRequest with
	// Reset, or with AfterApply like DropResponse with Reset.
	Reset bool
	// TransactionConflict fails a write on an item with
	// TransactionConflictException, and a transaction with the reason
	// TransactionConflict. Other operations are not affected.
	TransactionConflict bool
	// Error is what the caller gets: an [*APIError] or any other API error of the
	// SDK is answered as the service would, any other error is returned by the
	// HTTP client as a failure of the transport.
	Error error
	// AfterApply applies the request before Error or Reset.
	AfterApply bool
	// HoldResponse keeps the answer back as Hold does the request.
	HoldResponse <-chan struct{}
	// DelayResponse passes after the request has been applied.
	DelayResponse time.Duration
	// DropResponse loses the answer: the caller waits until its context ends.
	DropResponse bool
	// TruncateBody cuts the answer's body in the middle.
	TruncateBody bool
}

// InterceptFunc decides over the fault of a request. It may be called by many
// goroutines at once.
type InterceptFunc func(ctx context.Context, r *Request) Fault

// Intercept makes fn decide over every request from now on; nil removes it.
func (s *Server) Intercept(fn InterceptFunc) {
	if fn == nil {
		s.intercept.Store(nil)
		return
	}
	s.intercept.Store(&fn)
}

// fault asks the interceptor.
func (s *Server) fault(ctx context.Context, r *Request) Fault {
	if fn := s.intercept.Load(); fn != nil {
		return (*fn)(ctx, r)
	}
	return Fault{}
}
