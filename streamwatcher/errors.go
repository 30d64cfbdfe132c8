package streamwatcher

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/lockstream/lockstream/lockevent"
)

// The reasons of a StreamError.
var (
	ErrNoTable     = errors.New("streamwatcher: the table does not exist")
	ErrNoStream    = errors.New("streamwatcher: the table has no stream: enable it with the view type NEW_AND_OLD_IMAGES")
	ErrViewType    = errors.New("streamwatcher: the table's stream has the wrong view type: it must be NEW_AND_OLD_IMAGES")
	ErrAccess      = errors.New("streamwatcher: access denied: grant dynamodb:DescribeTable on the table and dynamodb:DescribeStream, GetShardIterator and GetRecords on its stream")
	ErrUnavailable = errors.New("streamwatcher: the stream does not answer")
)

// StreamError says why the stream of a table delivers nothing. It is
// lockevent.ErrDegraded, its Reason and, where there is one, the error of the call.
type StreamError struct {
	Table  string
	Region string // "" where the client passed to New does not tell
	Op     string // the operation that failed, "" where none did
	Reason error  // one of the errors above
	Err    error  // the error of the call; nil where the answer itself was the reason
}

func (e *StreamError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "streamwatcher: table %q", e.Table)
	if e.Region != "" {
		fmt.Fprintf(&b, " (%s)", e.Region)
	}
	b.WriteString(": ")
	if e.Op != "" {
		fmt.Fprintf(&b, "%s: ", e.Op)
	}
	b.WriteString(strings.TrimPrefix(e.Reason.Error(), "streamwatcher: "))
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap makes the error all three things that it is.
func (e *StreamError) Unwrap() []error {
	errs := []error{lockevent.ErrDegraded, e.Reason}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// fault is what the reader makes of a failed call.
type fault uint8

const (
	faultTransient   fault = iota // try again
	faultThrottle                 // try again, more slowly
	faultExpired                  // the iterator is too old
	faultTrimmed                  // the position is too old
	faultGone                     // the stream or shard is not there
	faultAccess                   // an operator must act
	faultUnsupported              // the request was not understood
)

var faultCodes = map[string]fault{
	"ThrottlingException":                    faultThrottle,
	"Throttling":                             faultThrottle,
	"ThrottledException":                     faultThrottle,
	"RequestThrottled":                       faultThrottle,
	"RequestThrottledException":              faultThrottle,
	"TooManyRequestsException":               faultThrottle,
	"LimitExceededException":                 faultThrottle,
	"RequestLimitExceeded":                   faultThrottle,
	"ProvisionedThroughputExceededException": faultThrottle,
	"ExpiredIteratorException":               faultExpired,
	"TrimmedDataAccessException":             faultTrimmed,
	"ResourceNotFoundException":              faultGone,
	"AccessDeniedException":                  faultAccess,
	"AccessDenied":                           faultAccess,
	"UnauthorizedOperation":                  faultAccess,
	"ValidationException":                    faultUnsupported,
	"ValidationError":                        faultUnsupported,
	"SerializationException":                 faultUnsupported,
}

// classify is the one place that reads the service's error codes. Signature and
// credential errors count as transient: credentials are renewed while the reader runs.
func classify(err error) fault {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return faultTransient
	}
	if f, ok := faultCodes[api.ErrorCode()]; ok {
		return f
	}
	// Throttling comes under codes and texts that no model lists.
	if strings.Contains(api.ErrorMessage(), "Rate exceeded") || strings.Contains(api.ErrorCode(), "Throttl") {
		return faultThrottle
	}
	return faultTransient
}

// timedOut names the time-out that ended a call, which the context's error does not.
func timedOut(err error, parent context.Context, op string, limit fmt.Stringer) error {
	if errors.Is(err, context.DeadlineExceeded) && parent.Err() == nil {
		return fmt.Errorf("%s: no answer within %v: %w", op, limit, err)
	}
	return err
}
