package fakedynamo

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The SDK can only encode the inputs of requests, so they are decoded here: a
// body is read as plain JSON and then poured into the input's fields, which
// have the names of the members. Members that the input does not know are
// ignored, as the service does.

var (
	valueType = reflect.TypeFor[types.AttributeValue]()
	timeType  = reflect.TypeFor[time.Time]()
)

// decodeInput reads a request's body into an input of the SDK.
func decodeInput(body []byte, in any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var raw any
	if err := dec.Decode(&raw); err != nil && !errors.Is(err, io.EOF) {
		return fail(codeSerialization, "The request body is not valid JSON")
	}
	if raw == nil {
		raw = map[string]any{}
	}
	return pour(raw, reflect.ValueOf(in).Elem())
}

// pour sets dst from a decoded JSON value.
func pour(raw any, dst reflect.Value) error {
	if raw == nil {
		return nil
	}
	if dst.Type() == valueType {
		v, err := decodeValue(raw)
		if err != nil {
			return err
		}
		dst.Set(reflect.ValueOf(v))
		return nil
	}
	if dst.Type() == timeType {
		return pourTime(raw, dst)
	}
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return pour(raw, dst.Elem())
	case reflect.Struct:
		return pourStruct(raw, dst)
	case reflect.Map:
		return pourMap(raw, dst)
	case reflect.Slice:
		return pourSlice(raw, dst)
	case reflect.String:
		if s, ok := raw.(string); ok {
			dst.SetString(s)
			return nil
		}
	case reflect.Bool:
		if b, ok := raw.(bool); ok {
			dst.SetBool(b)
			return nil
		}
	case reflect.Int32, reflect.Int64:
		if n, ok := raw.(json.Number); ok {
			if i, err := n.Int64(); err == nil && !dst.OverflowInt(i) {
				dst.SetInt(i)
				return nil
			}
		}
	case reflect.Float64:
		if n, ok := raw.(json.Number); ok {
			if f, err := n.Float64(); err == nil {
				dst.SetFloat(f)
				return nil
			}
		}
	}
	return wrongType(raw)
}

func wrongType(raw any) error {
	return fail(codeSerialization, "%s cannot be converted to the member's type", kindOf(raw))
}

// kindOf names the kind of a JSON value.
func kindOf(raw any) string {
	switch raw.(type) {
	case string:
		return "STRING_VALUE"
	case bool:
		return "BOOLEAN_VALUE"
	case json.Number:
		return "NUMBER_VALUE"
	case []any:
		return "START_ARRAY"
	}
	return "START_OBJECT"
}

// pourTime reads a time, which is a number of seconds with decimals.
func pourTime(raw any, dst reflect.Value) error {
	n, ok := raw.(json.Number)
	if !ok {
		return wrongType(raw)
	}
	seconds, err := n.Float64()
	if err != nil {
		return wrongType(raw)
	}
	dst.Set(reflect.ValueOf(time.UnixMilli(int64(math.Round(seconds * 1000)))))
	return nil
}

func pourStruct(raw any, dst reflect.Value) error {
	m, ok := raw.(map[string]any)
	if !ok {
		return wrongType(raw)
	}
	for name, v := range m {
		f := dst.FieldByName(name)
		if !f.IsValid() || !f.CanSet() {
			continue
		}
		if err := pour(v, f); err != nil {
			return err
		}
	}
	return nil
}

func pourMap(raw any, dst reflect.Value) error {
	m, ok := raw.(map[string]any)
	if !ok {
		return wrongType(raw)
	}
	dst.Set(reflect.MakeMapWithSize(dst.Type(), len(m)))
	for name, v := range m {
		e := reflect.New(dst.Type().Elem()).Elem()
		if err := pour(v, e); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(name), e)
	}
	return nil
}

func pourSlice(raw any, dst reflect.Value) error {
	if dst.Type().Elem().Kind() == reflect.Uint8 {
		s, ok := raw.(string)
		if !ok {
			return wrongType(raw)
		}
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return fail(codeSerialization, "The value of a binary member is not valid Base64")
		}
		dst.SetBytes(b)
		return nil
	}
	l, ok := raw.([]any)
	if !ok {
		return wrongType(raw)
	}
	dst.Set(reflect.MakeSlice(dst.Type(), len(l), len(l)))
	for i, v := range l {
		if err := pour(v, dst.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// newValues makes a value of each type; its field Value is then poured into.
var newValues = map[string]func() types.AttributeValue{
	"S":    func() types.AttributeValue { return &types.AttributeValueMemberS{} },
	"N":    func() types.AttributeValue { return &types.AttributeValueMemberN{} },
	"B":    func() types.AttributeValue { return &types.AttributeValueMemberB{} },
	"BOOL": func() types.AttributeValue { return &types.AttributeValueMemberBOOL{} },
	"NULL": func() types.AttributeValue { return &types.AttributeValueMemberNULL{} },
	"M":    func() types.AttributeValue { return &types.AttributeValueMemberM{} },
	"L":    func() types.AttributeValue { return &types.AttributeValueMemberL{} },
	"SS":   func() types.AttributeValue { return &types.AttributeValueMemberSS{} },
	"NS":   func() types.AttributeValue { return &types.AttributeValueMemberNS{} },
	"BS":   func() types.AttributeValue { return &types.AttributeValueMemberBS{} },
}

// decodeValue reads an attribute value, an object with one member.
func decodeValue(raw any) (types.AttributeValue, error) {
	m, ok := raw.(map[string]any)
	if !ok {
		return nil, wrongType(raw)
	}
	if len(m) > 1 {
		return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	}
	for name, member := range m {
		newValue, ok := newValues[name]
		if !ok || member == nil {
			break
		}
		v := newValue()
		if err := pour(member, reflect.ValueOf(v).Elem().FieldByName("Value")); err != nil {
			return nil, err
		}
		return v, nil
	}
	return nil, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}
