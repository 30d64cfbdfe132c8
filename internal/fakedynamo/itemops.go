package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// apply carries out a write of one item.
func (s *Server) apply(w *write) (change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, k, err := s.locate(w)
	if err != nil {
		return change{}, err
	}
	c, err := w.evaluate(t, k)
	if err != nil {
		return change{}, err
	}
	s.commit(c, false)
	return c, nil
}

func (s *Server) updateItem(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	if in.AttributeUpdates != nil || in.Expected != nil || in.ConditionalOperator != "" {
		return nil, errLegacy
	}
	if err := checkReturn(in.ReturnValues, true); err != nil {
		return nil, err
	}
	w, err := s.prepare(writeInput{
		verb: verbUpdate, table: in.TableName, attrs: in.Key,
		condition: in.ConditionExpression, update: in.UpdateExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		onFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, err
	}
	c, err := s.apply(w)
	if err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemOutput{
		Attributes:       w.returned(c, in.ReturnValues),
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, w.table, c.units),
	}, nil
}

// returned selects what an update gives back.
func (w *write) returned(c change, want types.ReturnValue) expr.Item {
	var out expr.Item
	switch want {
	case types.ReturnValueAllOld:
		out = c.old
	case types.ReturnValueAllNew:
		out = c.new
	case types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew:
		out = c.new
		if want == types.ReturnValueUpdatedOld {
			out = c.old
		}
		if w.update == nil {
			return nil
		}
		out = w.update.Targets().Apply(w.env, out)
	}
	if len(out) == 0 {
		return nil
	}
	return expr.CloneItem(out)
}

func (s *Server) putItem(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	if in.Expected != nil || in.ConditionalOperator != "" {
		return nil, errLegacy
	}
	if err := checkReturn(in.ReturnValues, false); err != nil {
		return nil, err
	}
	w, err := s.prepare(writeInput{
		verb: verbPut, table: in.TableName, attrs: in.Item, condition: in.ConditionExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		onFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, err
	}
	c, err := s.apply(w)
	if err != nil {
		return nil, err
	}
	return &dynamodb.PutItemOutput{
		Attributes:       w.returned(c, in.ReturnValues),
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, w.table, c.units),
	}, nil
}

func (s *Server) deleteItem(in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
	if in.Expected != nil || in.ConditionalOperator != "" {
		return nil, errLegacy
	}
	if err := checkReturn(in.ReturnValues, false); err != nil {
		return nil, err
	}
	w, err := s.prepare(writeInput{
		verb: verbDelete, table: in.TableName, attrs: in.Key, condition: in.ConditionExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		onFailure: in.ReturnValuesOnConditionCheckFailure,
	})
	if err != nil {
		return nil, err
	}
	c, err := s.apply(w)
	if err != nil {
		return nil, err
	}
	return &dynamodb.DeleteItemOutput{
		Attributes:       w.returned(c, in.ReturnValues),
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, w.table, c.units),
	}, nil
}

func (s *Server) getItem(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
	if in.AttributesToGet != nil {
		return nil, errLegacy
	}
	name, err := tableName(in.TableName)
	if err != nil {
		return nil, err
	}
	view, err := s.projector(in.ProjectionExpression, in.ExpressionAttributeNames)
	if err != nil {
		return nil, err
	}
	key, err := expr.CheckItem(in.Key)
	if err != nil {
		return nil, invalidExpr(err)
	}
	item, err := s.read(name, key)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.GetItemOutput{
		ConsumedCapacity: consumed(in.ReturnConsumedCapacity, name, func() float64 { return readUnits(expr.Size(item), in.ConsistentRead) }),
	}
	if item != nil {
		out.Item = expr.CloneItem(view(item))
	}
	return out, nil
}

// read gives the stored item at a key, nil when there is none.
func (s *Server) read(name string, key expr.Item) (expr.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.active(name)
	if err != nil {
		return nil, err
	}
	k, err := t.keyOf(key, true)
	if err != nil {
		return nil, err
	}
	return t.get(k), nil
}

// projector gives the function that cuts items down to a projection.
func (s *Server) projector(expression *string, names map[string]string) (func(expr.Item) expr.Item, error) {
	if expression == nil {
		if names != nil {
			return nil, invalid("ExpressionAttributeNames can only be specified when using expressions")
		}
		return func(item expr.Item) expr.Item { return item }, nil
	}
	p, err := s.cache.Projection(*expression)
	if err != nil {
		return nil, invalidExpr(err)
	}
	env, err := newEnv(names, nil, []expr.Expression{p})
	if err != nil {
		return nil, err
	}
	return func(item expr.Item) expr.Item { return p.Apply(env, item) }, nil
}

// errLegacy refuses the request parameters that expressions have replaced.
var errLegacy = invalid("The parameters that came before expressions are not supported here")

// checkReturn checks ReturnValues; a put and a delete know only two of them.
func checkReturn(v types.ReturnValue, update bool) error {
	switch v {
	case "", types.ReturnValueNone, types.ReturnValueAllOld:
		return nil
	case types.ReturnValueAllNew, types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew:
		if update {
			return nil
		}
		return invalid("ReturnValues can only be ALL_OLD or NONE")
	}
	return invalid("1 validation error detected: Value '%s' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]", v)
}
