package fakedynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	dbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// show gives a record as a reader of the stream sees it.
func (s *Server) show(st *stream, r record) types.Record {
	if r.raw != nil {
		return *r.raw
	}
	d := &types.StreamRecord{
		// The service gives the time in whole seconds.
		ApproximateCreationDateTime: aws.Time(r.at.UTC().Truncate(time.Second)),
		Keys:                        streamItem(r.keys),
		SequenceNumber:              aws.String(r.seq),
		StreamViewType:              types.StreamViewType(st.view),
	}
	size := expr.Size(r.keys)
	if st.view == dbtypes.StreamViewTypeNewImage || st.view == dbtypes.StreamViewTypeNewAndOldImages {
		d.NewImage = streamItem(r.new)
		size += expr.Size(r.new)
	}
	if st.view == dbtypes.StreamViewTypeOldImage || st.view == dbtypes.StreamViewTypeNewAndOldImages {
		d.OldImage = streamItem(r.old)
		size += expr.Size(r.old)
	}
	d.SizeBytes = aws.Int64(int64(size))
	out := types.Record{
		AwsRegion:    aws.String(s.region),
		EventID:      aws.String(st.eventID(r)),
		EventName:    r.event(),
		EventSource:  aws.String("aws:dynamodb"),
		EventVersion: aws.String("1.1"),
		Dynamodb:     d,
	}
	if r.byTTL {
		out.UserIdentity = &types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")}
	}
	return out
}

// event names the kind of change.
func (r record) event() types.OperationType {
	switch {
	case r.old == nil:
		return types.OperationTypeInsert
	case r.new == nil:
		return types.OperationTypeRemove
	}
	return types.OperationTypeModify
}

// tableItem gives an item of the streams client's types as one of the table client's, as
// far as keys need it.
func tableItem(item map[string]types.AttributeValue) expr.Item {
	out := make(expr.Item, len(item))
	for name, v := range item {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			out[name] = &dbtypes.AttributeValueMemberS{Value: v.Value}
		case *types.AttributeValueMemberN:
			out[name] = &dbtypes.AttributeValueMemberN{Value: v.Value}
		case *types.AttributeValueMemberB:
			out[name] = &dbtypes.AttributeValueMemberB{Value: v.Value}
		}
	}
	return out
}

// streamItem copies an item into the types of the streams client.
func streamItem(item expr.Item) map[string]types.AttributeValue {
	if item == nil {
		return nil
	}
	out := make(map[string]types.AttributeValue, len(item))
	for name, v := range item {
		out[name] = streamValue(v)
	}
	return out
}

func streamValue(v dbtypes.AttributeValue) types.AttributeValue {
	switch x := v.(type) {
	case *dbtypes.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: x.Value}
	case *dbtypes.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: x.Value}
	case *dbtypes.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: append([]byte{}, x.Value...)}
	case *dbtypes.AttributeValueMemberBOOL:
		return &types.AttributeValueMemberBOOL{Value: x.Value}
	case *dbtypes.AttributeValueMemberNULL:
		return &types.AttributeValueMemberNULL{Value: x.Value}
	case *dbtypes.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: streamItem(x.Value)}
	case *dbtypes.AttributeValueMemberL:
		out := make([]types.AttributeValue, len(x.Value))
		for i, e := range x.Value {
			out[i] = streamValue(e)
		}
		return &types.AttributeValueMemberL{Value: out}
	case *dbtypes.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: append([]string{}, x.Value...)}
	case *dbtypes.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: append([]string{}, x.Value...)}
	case *dbtypes.AttributeValueMemberBS:
		out := make([][]byte, len(x.Value))
		for i, b := range x.Value {
			out[i] = append([]byte{}, b...)
		}
		return &types.AttributeValueMemberBS{Value: out}
	}
	return nil
}
