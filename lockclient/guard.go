package lockclient

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// guard rides along with one request through the SDK. It turns the SDK's own retries
// off, drops the request when it grew old between being composed and being sent, and learns
// whether it was sent at all.
//
// Its fields are written by the goroutine that makes the call.
type guard struct {
	clock    clock
	composed reading
	limit    time.Duration

	entered bool // the SDK's middleware ran: without it, passed means nothing
	passed  bool // handed to the transport
}

// stayedHere reports that the request certainly never left the process.
func (g *guard) stayedHere() bool { return g.entered && !g.passed }

// options is passed to the SDK with the request.
func (g *guard) options(o *dynamodb.Options) {
	o.Retryer = aws.NopRetryer{}
	o.APIOptions = append(o.APIOptions, g.addTo)
}

func (g *guard) addTo(stack *middleware.Stack) error {
	enter := middleware.InitializeMiddlewareFunc("LockstreamEnter", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		g.entered = true
		return next.HandleInitialize(ctx, in)
	})
	// Last before the transport, behind signing: a process that was paused anywhere
	// before here must not send an old token under a fresh signature.
	pass := middleware.FinalizeMiddlewareFunc("LockstreamPass", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if g.clock.read().age(g.composed) > g.limit {
			return middleware.FinalizeOutput{}, middleware.Metadata{}, errStale
		}
		g.passed = true
		return next.HandleFinalize(ctx, in)
	})
	if err := stack.Initialize.Add(enter, middleware.Before); err != nil {
		return err
	}
	return stack.Finalize.Add(pass, middleware.After)
}

// dateOf returns the server's Date of an answer, zero where there is none. The SDK gives
// it as metadata of a success, and with the response that a service's error carries.
func dateOf(success middleware.Metadata, err error) time.Time {
	if err == nil {
		date, _ := awsmiddleware.GetServerTime(success)
		return date
	}
	var resp *smithyhttp.ResponseError
	if !errors.As(err, &resp) || resp.Response == nil || resp.Response.Response == nil {
		return time.Time{}
	}
	date, perr := http.ParseTime(resp.Response.Header.Get("Date"))
	if perr != nil {
		return time.Time{}
	}
	return date
}
