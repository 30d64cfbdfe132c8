package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// sdk gives the failure as the SDK's client of the service gives it: the type
// of its model where it has one, or else a generic error.
func (f *failure) sdk(svc service) smithy.APIError {
	var err smithy.APIError
	if svc == serviceStreams {
		err = f.sdkStreams()
	} else {
		err = f.sdkDB()
	}
	if err == nil {
		return &smithy.GenericAPIError{Code: f.code, Message: f.message}
	}
	return err
}

func (f *failure) sdkDB() smithy.APIError {
	m := aws.String(f.message)
	switch f.code {
	case codeConditionFailed:
		return &types.ConditionalCheckFailedException{Message: m, Item: expr.CloneItem(f.item)}
	case codeCanceled:
		return &types.TransactionCanceledException{Message: m, CancellationReasons: f.reasons}
	case codeConflict:
		return &types.TransactionConflictException{Message: m}
	case codeNotFound:
		return &types.ResourceNotFoundException{Message: m}
	case codeInUse:
		return &types.ResourceInUseException{Message: m}
	case codeMismatch:
		return &types.IdempotentParameterMismatchException{Message: m}
	case "InternalServerError":
		return &types.InternalServerError{Message: m}
	case "ProvisionedThroughputExceededException":
		return &types.ProvisionedThroughputExceededException{Message: m}
	case "RequestLimitExceeded":
		return &types.RequestLimitExceeded{Message: m}
	case "ThrottlingException":
		return &types.ThrottlingException{Message: m}
	case "LimitExceededException":
		return &types.LimitExceededException{Message: m}
	case "TransactionInProgressException":
		return &types.TransactionInProgressException{Message: m}
	case "ItemCollectionSizeLimitExceededException":
		return &types.ItemCollectionSizeLimitExceededException{Message: m}
	}
	return nil
}

func (f *failure) sdkStreams() smithy.APIError {
	m := aws.String(f.message)
	switch f.code {
	case codeNotFound:
		return &streamtypes.ResourceNotFoundException{Message: m}
	case codeExpiredIterator:
		return &streamtypes.ExpiredIteratorException{Message: m}
	case codeTrimmed:
		return &streamtypes.TrimmedDataAccessException{Message: m}
	case "InternalServerError":
		return &streamtypes.InternalServerError{Message: m}
	case "LimitExceededException":
		return &streamtypes.LimitExceededException{Message: m}
	}
	return nil
}
