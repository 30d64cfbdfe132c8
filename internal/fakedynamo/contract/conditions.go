package contract

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sample is the item that conditions are tried on.
var sample = item{
	"s": str("hello"), "n": num("10"), "b": bin("bytes"), "t": boolean(true),
	"l":  list(str("x"), num("2"), object(item{"in": str("deep")})),
	"m":  object(item{"a": str("A"), "k": object(item{"z": num("1")})}),
	"ss": strs("red", "green"), "ns": nums("1", "2"), "blank": str(""),
	"data": str("reserved"),
}

// conditionCases are conditions with what they must come to on the sample.
// Their values are taken from conditionValues.
var conditionCases = map[string]bool{
	"attribute_exists(s)":                      true,
	"attribute_exists(absent)":                 false,
	"attribute_not_exists(absent)":             true,
	"attribute_not_exists(s)":                  false,
	"attribute_exists(m.a)":                    true,
	"attribute_exists(m.k.z)":                  true,
	"attribute_exists(m.absent)":               false,
	"attribute_exists(l[0])":                   true,
	"attribute_exists(l[9])":                   false,
	"attribute_exists(l[2].#in)":               true,
	"attribute_exists(s.a)":                    false,
	"attribute_exists(#data)":                  true,
	"s = :hello":                               true,
	"s = :other":                               false,
	"s <> :other":                              true,
	"s <> :hello":                              false,
	"s = :ten":                                 false,
	"s <> :ten":                                true,
	"absent = :hello":                          false,
	"absent <> :hello":                         true,
	"absent < :ten":                            false,
	"absent >= :ten":                           false,
	"NOT absent = :hello":                      true,
	"n = :ten":                                 true,
	"n = :tenpointzero":                        true,
	"n < :nine":                                false,
	"n > :nine":                                true,
	"n >= :ten":                                true,
	"n <= :ten":                                true,
	"n < :eleven":                              true,
	"s < :ten":                                 false,
	"s > :ten":                                 false,
	"s < :other":                               true,
	"b = :bytes":                               true,
	"b < :bytes":                               false,
	"t = :true":                                true,
	"m.a = :A":                                 true,
	"l[1] = :two":                              true,
	"l[2].#in = :deep":                         true,
	"blank = :empty":                           true,
	"n BETWEEN :nine AND :eleven":              true,
	"n BETWEEN :ten AND :ten":                  true,
	"n BETWEEN :eleven AND :hundred":           false,
	"absent BETWEEN :nine AND :ten":            false,
	"s IN (:other, :hello)":                    true,
	"s IN (:other, :A)":                        false,
	"absent IN (:other, :hello)":               false,
	"n IN (:hello, :ten)":                      true,
	"begins_with(s, :he)":                      true,
	"begins_with(s, :lo)":                      false,
	"begins_with(absent, :he)":                 false,
	"contains(s, :lo)":                         true,
	"contains(ss, :red)":                       true,
	"contains(ss, :hello)":                     false,
	"contains(ns, :two)":                       true,
	"contains(l, :two)":                        true,
	"contains(l, :ten)":                        false,
	"attribute_type(s, :S)":                    true,
	"attribute_type(n, :S)":                    false,
	"attribute_type(m, :M)":                    true,
	"attribute_type(absent, :S)":               false,
	"size(s) = :five":                          true,
	"size(l) > :two":                           true,
	"size(ss) = :two":                          true,
	"size(b) = :five":                          true,
	"size(m) = :two":                           true,
	"size(absent) = :five":                     false,
	"ss = :colours":                            true,
	"s = :hello AND n = :ten":                  true,
	"s = :hello AND n = :nine":                 false,
	"s = :other OR n = :ten":                   true,
	"s = :other OR n = :nine":                  false,
	"NOT s = :other":                           true,
	"NOT (s = :hello AND n = :ten)":            false,
	"NOT s = :other AND n = :nine":             false,
	"s = :hello OR s = :other AND n = :nine":   true,
	"(s = :hello OR s = :other) AND n = :nine": false,
	"s=:hello and not n=:nine":                 true,
	"attribute_not_exists(#data) OR (n = :ten AND s = :hello)": true,
}

var conditionValues = item{
	":hello": str("hello"), ":other": str("other"), ":he": str("he"), ":lo": str("lo"), ":A": str("A"), ":deep": str("deep"),
	":empty": str(""), ":red": str("red"), ":S": str("S"), ":M": str("M"), ":bytes": bin("bytes"), ":true": boolean(true),
	":two": num("2"), ":five": num("5"), ":nine": num("9"), ":ten": num("10"), ":tenpointzero": num("10.0"),
	":eleven": num("11"), ":hundred": num("100"), ":colours": strs("green", "red"),
}

var conditionNames = map[string]string{"#in": "in", "#data": "data"}

// used picks the placeholders that occur in expressions.
func used[T any](all map[string]T, expressions ...string) map[string]T {
	out := map[string]T{}
	for name, v := range all {
		for _, e := range expressions {
			words := strings.FieldsFunc(e, func(r rune) bool { return strings.ContainsRune(" (),.=<>+-[]", r) })
			for _, w := range words {
				if w == name {
					out[name] = v
				}
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (s *suite) conditions(t *testing.T) {
	key := newName()
	s.put(t, s.table, with(key, sample))
	for condition, want := range conditionCases {
		t.Run(condition, func(t *testing.T) {
			_, err := s.db.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
				TableName: aws.String(s.table), Key: item{"key": str(key)},
				UpdateExpression:          aws.String("REMOVE unused"),
				ConditionExpression:       aws.String(condition),
				ExpressionAttributeNames:  used(conditionNames, condition),
				ExpressionAttributeValues: used(conditionValues, condition),
			})
			_, failed := errors.AsType[*types.ConditionalCheckFailedException](err)
			switch {
			case err != nil && !failed:
				t.Errorf("got %v", err)
			case failed == want:
				t.Errorf("held: %v, want %v", !failed, want)
			}
		})
	}
}

func (s *suite) failedCondition(t *testing.T) {
	key := newName()
	in := &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: item{"key": str(key)},
		UpdateExpression:          aws.String("SET v = :v"),
		ConditionExpression:       aws.String("attribute_exists(v)"),
		ExpressionAttributeValues: item{":v": num("1")},
	}
	check := func(wantItem item) {
		t.Helper()
		_, err := s.db.UpdateItem(t.Context(), in)
		f, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		switch {
		case !ok:
			t.Fatalf("got %v, want a failed condition", err)
		case !equalItems(f.Item, wantItem):
			t.Errorf("the failure shows %v, want %v", f.Item, wantItem)
		}
	}
	check(nil)
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	check(nil)
	if got := s.get(t, s.table, item{"key": str(key)}); got != nil {
		t.Errorf("a failed update made %v", got)
	}
	old := with(key, item{"a": str("x"), "n": num("7"), "data": bin("payload")})
	s.put(t, s.table, old)
	check(old)
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureNone
	check(nil)
	if got := s.get(t, s.table, item{"key": str(key)}); !equalItems(got, old) {
		t.Errorf("a failed update left %v, want %v", got, old)
	}
}

// equalItems compares items; the order of sets does not matter.
func equalItems(a, b item) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(plainItem(a), plainItem(b)))
}

func plainItem(it item) map[string]any {
	out := map[string]any{}
	for name, v := range it {
		out[name] = plain(v)
	}
	return out
}

// plain makes values comparable by reflect.DeepEqual.
func plain(v types.AttributeValue) any {
	switch x := v.(type) {
	case *types.AttributeValueMemberM:
		return plainItem(x.Value)
	case *types.AttributeValueMemberL:
		out := []any{}
		for _, e := range x.Value {
			out = append(out, plain(e))
		}
		return out
	case *types.AttributeValueMemberSS:
		return plainSet(x.Value, "SS")
	case *types.AttributeValueMemberNS:
		return plainSet(x.Value, "NS")
	}
	return fmt.Sprintf("%T %v", v, reflect.ValueOf(v).Elem().FieldByName("Value"))
}

func plainSet(elements []string, kind string) map[string]bool {
	out := map[string]bool{kind: true}
	for _, e := range elements {
		out["element "+e] = true
	}
	return out
}
