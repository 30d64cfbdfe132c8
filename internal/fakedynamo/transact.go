package fakedynamo

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

const (
	maxActions     = 100
	tokenLifetime  = 10 * time.Minute
	maxTokenLength = 36
)

func (s *Server) transactWriteItems(in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	if n := len(in.TransactItems); n == 0 || n > maxActions {
		return nil, invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to %d and greater than or equal to 1", maxActions)
	}
	mark, err := fingerprint(in)
	if err != nil {
		return nil, err
	}
	writes := make([]*write, len(in.TransactItems))
	for i := range in.TransactItems {
		if writes[i], err = s.prepareAction(&in.TransactItems[i]); err != nil {
			return nil, err
		}
	}
	if err := s.transact(writes, aws.ToString(in.ClientRequestToken), mark); err != nil {
		return nil, err
	}
	out := &dynamodb.TransactWriteItemsOutput{}
	for _, w := range writes {
		// A transactional write costs twice; sizes are left out of account.
		if c := consumed(in.ReturnConsumedCapacity, w.table, func() float64 { return 2 }); c != nil {
			out.ConsumedCapacity = append(out.ConsumedCapacity, *c)
		}
	}
	return out, nil
}

// prepareAction checks one action of a transaction.
func (s *Server) prepareAction(a *types.TransactWriteItem) (*write, error) {
	var found []writeInput
	if p := a.Put; p != nil {
		found = append(found, writeInput{
			verb: verbPut, table: p.TableName, attrs: p.Item, condition: p.ConditionExpression,
			names: p.ExpressionAttributeNames, values: p.ExpressionAttributeValues, onFailure: p.ReturnValuesOnConditionCheckFailure,
		})
	}
	if u := a.Update; u != nil {
		if u.UpdateExpression == nil {
			return nil, invalid("1 validation error detected: Value null at 'transactItems.1.member.update.updateExpression' failed to satisfy constraint: Member must not be null")
		}
		found = append(found, writeInput{
			verb: verbUpdate, table: u.TableName, attrs: u.Key, condition: u.ConditionExpression, update: u.UpdateExpression,
			names: u.ExpressionAttributeNames, values: u.ExpressionAttributeValues, onFailure: u.ReturnValuesOnConditionCheckFailure,
		})
	}
	if d := a.Delete; d != nil {
		found = append(found, writeInput{
			verb: verbDelete, table: d.TableName, attrs: d.Key, condition: d.ConditionExpression,
			names: d.ExpressionAttributeNames, values: d.ExpressionAttributeValues, onFailure: d.ReturnValuesOnConditionCheckFailure,
		})
	}
	if c := a.ConditionCheck; c != nil {
		if c.ConditionExpression == nil {
			return nil, invalid("1 validation error detected: Value null at 'transactItems.1.member.conditionCheck.conditionExpression' failed to satisfy constraint: Member must not be null")
		}
		found = append(found, writeInput{
			verb: verbCheck, table: c.TableName, attrs: c.Key, condition: c.ConditionExpression,
			names: c.ExpressionAttributeNames, values: c.ExpressionAttributeValues, onFailure: c.ReturnValuesOnConditionCheckFailure,
		})
	}
	if len(found) != 1 {
		return nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
	}
	return s.prepare(found[0])
}

// transact carries out all writes or none.
func (s *Server) transact(writes []*write, token string, mark []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if done, err := s.tokens.seen(token, mark, now); done || err != nil {
		return err
	}
	changes := make([]change, len(writes))
	reasons := make([]types.CancellationReason, len(writes))
	type place struct {
		t *table
		k rowKey
	}
	places := map[place]bool{}
	for i, w := range writes {
		t, k, err := s.locate(w)
		if err != nil {
			return err
		}
		if places[place{t, k}] {
			return invalid("Transaction request cannot include multiple operations on one item")
		}
		places[place{t, k}] = true
		changes[i] = change{table: t, key: k}
	}
	failed := false
	for i, w := range writes {
		c, err := w.evaluate(changes[i].table, changes[i].key)
		changes[i], reasons[i] = c, noReason()
		var f *failure
		if errors.As(err, &f) {
			failed = true
			reasons[i] = reasonOf(f)
		}
	}
	if failed {
		return canceled(reasons)
	}
	for _, c := range changes {
		s.commit(c, false)
	}
	s.tokens.remember(token, mark, now)
	return nil
}

// reasonOf turns the failure of one action into its reason.
func reasonOf(f *failure) types.CancellationReason {
	if f.code == codeConditionFailed {
		return reason("ConditionalCheckFailed", f.message, f.item)
	}
	return reason("ValidationError", f.message, nil)
}

func reason(code, message string, item expr.Item) types.CancellationReason {
	return types.CancellationReason{Code: aws.String(code), Message: aws.String(message), Item: expr.CloneItem(item)}
}

// noReason stands for an action that did not fail.
func noReason() types.CancellationReason {
	return types.CancellationReason{Code: aws.String("None")}
}

func canceled(reasons []types.CancellationReason) *failure {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = aws.ToString(r.Code)
	}
	f := fail(codeCanceled, "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))
	f.reasons = reasons
	return f
}

// tokenCache remembers the transactions that succeeded, so that one sent again
// with the same token is not applied again.
type tokenCache struct {
	entries map[string]tokenEntry
	queue   []string // oldest first
}

type tokenEntry struct {
	at   time.Time
	mark []byte
}

// seen tells whether the transaction has been done before.
func (c *tokenCache) seen(token string, mark []byte, now time.Time) (bool, error) {
	if token == "" {
		return false, nil
	}
	if len(token) > maxTokenLength {
		return false, invalid("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to %d", token, maxTokenLength)
	}
	e, ok := c.entries[token]
	if !ok || now.Sub(e.at) > tokenLifetime {
		return false, nil
	}
	if !bytes.Equal(e.mark, mark) {
		return false, fail(codeMismatch, "Request parameters do not match those of the earlier request with this token")
	}
	return true, nil
}

func (c *tokenCache) remember(token string, mark []byte, now time.Time) {
	if token == "" {
		return
	}
	for len(c.queue) > 0 && now.Sub(c.entries[c.queue[0]].at) > tokenLifetime {
		delete(c.entries, c.queue[0])
		c.queue = c.queue[1:]
	}
	if _, again := c.entries[token]; !again {
		c.queue = append(c.queue, token)
	}
	c.entries[token] = tokenEntry{at: now, mark: mark}
}

// fingerprint gives a text that is equal for equal transactions; nil without a
// token.
func fingerprint(in *dynamodb.TransactWriteItemsInput) ([]byte, error) {
	if aws.ToString(in.ClientRequestToken) == "" {
		return nil, nil
	}
	body, err := encodeJSON(in)
	if err != nil {
		return nil, invalidExpr(err)
	}
	// Decoded and encoded again, the members of maps are in order.
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, invalidExpr(err)
	}
	return json.Marshal(v)
}
