package contract

import (
	"errors"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// holds is a condition check that attribute a is :one.
func (s *suite) holds(key string, show types.ReturnValuesOnConditionCheckFailure) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String(s.table), Key: item{"key": str(key)}, ConditionExpression: aws.String("a = :one"),
		ExpressionAttributeValues: item{":one": num("1")}, ReturnValuesOnConditionCheckFailure: show,
	}}
}

// sets is an unconditional update of attribute v to :v.
func (s *suite) sets(key, v string) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(s.table), Key: item{"key": str(key)}, UpdateExpression: aws.String("SET v = :v"),
		ExpressionAttributeValues: item{":v": str(v)},
	}}
}

func (s *suite) transact(t *testing.T, token string, items ...types.TransactWriteItem) error {
	t.Helper()
	in := &dynamodb.TransactWriteItemsInput{TransactItems: items}
	if token != "" {
		in.ClientRequestToken = aws.String(token)
	}
	_, err := s.db.TransactWriteItems(t.Context(), in)
	return err
}

func (s *suite) transactions(t *testing.T) {
	lock, updated, put, deleted := newName(), newName(), newName(), newName()
	s.put(t, s.table, with(lock, item{"a": num("1")}))
	s.put(t, s.table, with(deleted, nil))
	err := s.transact(t, "", s.holds(lock, ""), s.sets(updated, "x"),
		types.TransactWriteItem{Put: &types.Put{TableName: aws.String(s.table), Item: with(put, item{"p": num("1")})}},
		types.TransactWriteItem{Delete: &types.Delete{TableName: aws.String(s.table), Key: item{"key": str(deleted)}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]item{
		lock:    with(lock, item{"a": num("1")}),
		updated: with(updated, item{"v": str("x")}),
		put:     with(put, item{"p": num("1")}),
		deleted: nil,
	} {
		if got := s.get(t, s.table, item{"key": str(key)}); !equalItems(got, want) {
			t.Errorf("got %v, want %v", plainItem(got), plainItem(want))
		}
	}
}

func (s *suite) transactionReasons(t *testing.T) {
	good, bad, absent, target := newName(), newName(), newName(), newName()
	s.put(t, s.table, with(good, item{"a": num("1")}))
	s.put(t, s.table, with(bad, item{"a": num("2")}))
	all := types.ReturnValuesOnConditionCheckFailureAllOld
	err := s.transact(t, "", s.sets(target, "x"), s.holds(good, all), s.holds(bad, all), s.holds(absent, all))
	f, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		t.Fatalf("got %v, want a canceled transaction", err)
	}
	var codes []string
	for _, r := range f.CancellationReasons {
		codes = append(codes, aws.ToString(r.Code))
	}
	if want := []string{"None", "None", "ConditionalCheckFailed", "ConditionalCheckFailed"}; !slices.Equal(codes, want) {
		t.Fatalf("the reasons are %v, want %v", codes, want)
	}
	if got, want := f.CancellationReasons[2].Item, with(bad, item{"a": num("2")}); !equalItems(got, want) {
		t.Errorf("the reason shows %v, want %v", plainItem(got), plainItem(want))
	}
	for _, i := range []int{0, 1, 3} {
		if got := f.CancellationReasons[i].Item; len(got) != 0 {
			t.Errorf("reason %d shows %v", i, plainItem(got))
		}
	}
	if got := s.get(t, s.table, item{"key": str(target)}); got != nil {
		t.Errorf("a canceled transaction made %v", got)
	}
	err = s.transact(t, "", s.holds(bad, ""))
	if f, ok := errors.AsType[*types.TransactionCanceledException](err); !ok || len(f.CancellationReasons) != 1 || len(f.CancellationReasons[0].Item) != 0 {
		t.Errorf("without ALL_OLD: %v", err)
	}
}

func (s *suite) transactionToken(t *testing.T) {
	key, token := newName(), newName()[:30]
	count := types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(s.table), Key: item{"key": str(key)}, UpdateExpression: aws.String("ADD n :one"),
		ExpressionAttributeValues: item{":one": num("1")},
	}}
	for range 2 {
		if err := s.transact(t, token, count); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.get(t, s.table, item{"key": str(key)}), with(key, item{"n": num("1")}); !equalItems(got, want) {
		t.Errorf("sent twice with one token: %v, want %v", plainItem(got), plainItem(want))
	}
	err := s.transact(t, token, s.sets(key, "other"))
	if _, ok := errors.AsType[*types.IdempotentParameterMismatchException](err); !ok {
		t.Errorf("another transaction with the token: %v", err)
	}
}

func (s *suite) rejectedTransactions(t *testing.T) {
	key := newName()
	s.wantError(t, s.transact(t, "", s.sets(key, "a"), s.holds(key, "")), "ValidationException", "multiple operations on one item")
	var many []types.TransactWriteItem
	for range 101 {
		many = append(many, s.sets(newName(), "a"))
	}
	s.wantError(t, s.transact(t, "", many...), "ValidationException", "")
	if err := s.transact(t, "", many[:100]...); err != nil {
		t.Errorf("100 actions: %v", err)
	}
	s.wantError(t, s.transact(t, "", types.TransactWriteItem{}), "ValidationException", "")
	unused := s.holds(key, "")
	unused.ConditionCheck.ExpressionAttributeValues[":two"] = num("2")
	if !s.Lenient {
		s.wantError(t, s.transact(t, "", s.sets(newName(), "a"), unused), "ValidationException", "unused")
	}
	nowhere := s.sets(key, "a")
	nowhere.Update.TableName = aws.String(newName())
	s.wantError(t, s.transact(t, "", nowhere), "ResourceNotFoundException", "")
}
