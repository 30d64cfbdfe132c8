package fakedynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

var (
	protocol = awsjson.New10(schemas.DynamoDB_20120810)
	// anyOperation only says that there is something to encode.
	anyOperation = smithy.NewOperationSchema(schemas.GetItem, schemas.GetItemInput, schemas.GetItemOutput)
)

// encodeJSON writes any shape of the SDK as the body of a message, with the
// SDK's own encoder.
func encodeJSON(v any) ([]byte, error) {
	shape, ok := v.(smithy.Serializable)
	if !ok {
		return nil, fmt.Errorf("%T cannot be encoded", v)
	}
	req, ok := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	if !ok {
		return nil, errors.New("the SDK's request type has changed")
	}
	if err := protocol.SerializeRequest(context.Background(), anyOperation, shape, req); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	body, err := io.ReadAll(req.GetStream())
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return body, nil
}

// encodeFailure writes the body of an error answer.
func encodeFailure(f *failure, svc service) ([]byte, error) {
	body := map[string]json.RawMessage{}
	if shape, ok := f.sdk(svc).(smithy.Serializable); ok {
		raw, err := encodeJSON(shape)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.code, err)
		}
	}
	for name, text := range map[string]string{"__type": typeName(f.code), "message": f.message} {
		raw, err := json.Marshal(text)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.code, err)
		}
		body[name] = raw
	}
	if f.code == codeCanceled {
		// This is the only error whose message has a capital.
		body["Message"] = body["message"]
		delete(body, "message")
	}
	return json.Marshal(body)
}

// typeName gives an error code the name space that the service gives it.
func typeName(code string) string {
	switch {
	case code == codeValidation:
		return "com.amazon.coral.validate#" + code
	case code == codeSerialization, code == codeUnknownOp, strings.HasPrefix(code, "Throttling"),
		strings.HasPrefix(code, "AccessDenied"), strings.HasPrefix(code, "UnrecognizedClient"), strings.HasPrefix(code, "InvalidSignature"):
		return "com.amazon.coral.service#" + code
	}
	return "com.amazonaws.dynamodb.v20120810#" + code
}
