package fakedynamo

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// Codes of errors that the server gives by itself.
const (
	codeValidation      = "ValidationException"
	codeConditionFailed = "ConditionalCheckFailedException"
	codeCanceled        = "TransactionCanceledException"
	codeConflict        = "TransactionConflictException"
	codeNotFound        = "ResourceNotFoundException"
	codeInUse           = "ResourceInUseException"
	codeMismatch        = "IdempotentParameterMismatchException"
	codeExpiredIterator = "ExpiredIteratorException"
	codeTrimmed         = "TrimmedDataAccessException"
	codeSerialization   = "SerializationException"
	codeUnknownOp       = "UnknownOperationException"
)

// APIError is an error answer for [Fault.Error]. Code is a name such as
// ThrottlingException; Status is the HTTP status, 0 for the one that fits the
// code.
type APIError struct {
	Code    string
	Message string
	Status  int
}

// Error implements error.
func (e *APIError) Error() string { return e.Code + ": " + e.Message }

// ErrorCode implements smithy.APIError.
func (e *APIError) ErrorCode() string { return e.Code }

// ErrorMessage implements smithy.APIError.
func (e *APIError) ErrorMessage() string { return e.Message }

// ErrorFault implements smithy.APIError.
func (e *APIError) ErrorFault() smithy.ErrorFault {
	if e.Status >= 500 {
		return smithy.FaultServer
	}
	return smithy.FaultClient
}

// failure is an error answer of the service, before it takes the form of one
// of the fronts.
type failure struct {
	code, message string
	status        int
	item          expr.Item                  // of a failed condition, when asked for
	reasons       []types.CancellationReason // of a canceled transaction
}

// Error implements error.
func (f *failure) Error() string { return f.code + ": " + f.message }

func fail(code, format string, args ...any) *failure {
	return &failure{code: code, message: fmt.Sprintf(format, args...), status: http.StatusBadRequest}
}

func invalid(format string, args ...any) *failure {
	return fail(codeValidation, format, args...)
}

// invalidExpr turns an error of an expression or a value into a failure.
func invalidExpr(err error) *failure { return invalid("%s", err.Error()) }

// faultError brings the error of a fault into the form of the server's own.
func faultError(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	f := &failure{code: api.ErrorCode(), message: api.ErrorMessage()}
	var own *APIError
	if errors.As(err, &own) {
		f.status = own.Status
	}
	if f.status == 0 {
		f.status = statusOf(f.code)
	}
	if c, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		f.item = c.Item
	}
	if c, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		f.reasons = c.CancellationReasons
	}
	return f
}

// statusOf gives the HTTP status that belongs to an error code.
func statusOf(code string) int {
	switch {
	case code == "ServiceUnavailable" || code == "ServiceUnavailableException":
		return http.StatusServiceUnavailable
	case strings.HasPrefix(code, "InternalServerError"), strings.HasPrefix(code, "InternalFailure"):
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// conflict is the failure of a write that meets another transaction; nil for
// operations that cannot meet one.
func conflict(in any) error {
	const text = "Transaction is ongoing for the item"
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput, *dynamodb.PutItemInput, *dynamodb.DeleteItemInput:
		return fail(codeConflict, text)
	case *dynamodb.TransactWriteItemsInput:
		reasons := make([]types.CancellationReason, max(1, len(in.TransactItems)))
		for i := range reasons {
			reasons[i] = noReason()
		}
		reasons[0] = reason("TransactionConflict", text, nil)
		return canceled(reasons)
	}
	return nil
}
