package lockclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// failure is the one classification of what a request can end in.
type failure uint8

const (
	failNone       failure = iota
	failRefused            // the condition did not hold
	failThrottled          // not applied; the service asks for less
	failConflict           // not applied; a transaction holds the item
	failTransient          // not applied, and may go through later
	failSkew               // not applied; the SDK corrects its signing clock from the answer
	failUnsendable         // never left this process: no credentials, no Region, no endpoint
	failStale              // composed too long ago when it was about to be sent
	failUnknown            // may have been applied, or may yet be
	failPermanent          // not applied, and asking again will not help
)

// applied says whether a write that failed like this may be in the table.
func (f failure) maybeApplied() bool { return f == failUnknown }

// The time-outs, named in the errors that they cause.
var (
	errRequestTimeout = errors.New("lockclient: request timed out")
	errReleaseTimeout = errors.New("lockclient: release timed out")
	errCloseTimeout   = errors.New("lockclient: close gave up waiting")
	errStale          = errors.New("lockclient: request was composed too long ago to be sent")
)

// classify tells what err means for the write or read that returned it. sent is the
// guard of the request.
func classify(err error, sent *guard) failure {
	if err == nil {
		return failNone
	}
	var refused *types.ConditionalCheckFailedException
	if errors.As(err, &refused) {
		return failRefused
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return classifyCanceled(canceled)
	}
	if errors.Is(err, errStale) {
		return failStale
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return classifyAPI(api, err)
	}
	if sent.stayedHere() || isDialError(err) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || isDialError(err) {
			return failTransient
		}
		return failUnsendable
	}
	return failUnknown
}

func classifyAPI(api smithy.APIError, err error) failure {
	switch api.ErrorCode() {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "RequestLimitExceeded",
		"LimitExceededException", "TooManyRequestsException":
		return failThrottled
	case "TransactionConflictException", "TransactionInProgressException", "ReplicatedWriteConflictException":
		return failConflict
	case "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "SignatureDoesNotMatch",
		"InvalidSignatureException", "AuthFailure":
		return failSkew
	case "ExpiredTokenException", "ExpiredToken":
		return failTransient // the provider fetches new credentials for the next request
	case "InternalServerError", "InternalFailure", "ServiceUnavailable", "ServiceUnavailableException", "RequestTimeout":
		return failUnknown
	}
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.HTTPStatusCode() >= 500 {
		return failUnknown
	}
	return failPermanent
}

// isDialError reports a connection that was never made, so nothing was sent over it.
func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// explain gives a permanent error its sentinel, so that callers need not know the
// service's codes.
func explain(err error) error {
	var noTable *types.ResourceNotFoundException
	if errors.As(err, &noTable) {
		return fmt.Errorf("%w: %w", ErrNoTable, err)
	}
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationException" && isSchemaText(api.ErrorMessage()) {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return err
}

// isSchemaText recognises the texts with which the service refuses a key that does not
// fit the table; it has no code of its own for that.
func isSchemaText(text string) bool {
	for _, part := range []string{
		"key element does not match the schema", "number of conditions on the keys is invalid",
		"missing the key", "Type mismatch for key",
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(part)) {
			return true
		}
	}
	return false
}
