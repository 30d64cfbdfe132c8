package contract

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// updateCase is an update of an item, with what it must leave.
type updateCase struct {
	before     item
	expression string
	after      item
}

var updateCases = map[string]updateCase{
	"creates":              {nil, "SET a = :one", item{"a": num("1")}},
	"keeps the rest":       {item{"b": str("x")}, "SET a = :one", item{"a": num("1"), "b": str("x")}},
	"replaces any type":    {item{"a": str("x")}, "SET a = :one", item{"a": num("1")}},
	"several":              {item{"a": num("1")}, "SET a = :two, b = a, #data = :x", item{"a": num("2"), "b": num("1"), "data": str("x")}},
	"swap":                 {item{"a": num("1"), "b": num("2")}, "SET a = b, b = a", item{"a": num("2"), "b": num("1")}},
	"plus":                 {item{"a": num("41")}, "SET a = a + :one", item{"a": num("42")}},
	"minus":                {item{"a": num("1")}, "SET a = a - :two", item{"a": num("-1")}},
	"fractions":            {item{"a": num("0.1")}, "SET a = a + :fifth", item{"a": num("0.3")}},
	"if_not_exists":        {item{"b": num("5")}, "SET a = if_not_exists(a, :two), b = if_not_exists(b, :two)", item{"a": num("2"), "b": num("5")}},
	"counter":              {nil, "SET a = if_not_exists(a, :zero) + :one", item{"a": num("1")}},
	"list_append":          {item{"l": list(num("1"))}, "SET l = list_append(l, :list)", item{"l": list(num("1"), str("x"))}},
	"list_append in front": {item{"l": list(num("1"))}, "SET l = list_append(:list, l)", item{"l": list(str("x"), num("1"))}},
	"element":              {item{"l": list(num("1"), num("2"))}, "SET l[1] = :x", item{"l": list(num("1"), str("x"))}},
	"element behind end":   {item{"l": list(num("1"))}, "SET l[7] = :x, l[5] = :two", item{"l": list(num("1"), num("2"), str("x"))}},
	"member":               {item{"m": object(item{"a": num("1")})}, "SET m.b = :x", item{"m": object(item{"a": num("1"), "b": str("x")})}},
	"remove":               {item{"a": num("1"), "b": num("2")}, "REMOVE a, absent", item{"b": num("2")}},
	"remove elements":      {item{"l": list(num("1"), num("2"), num("3"))}, "REMOVE l[0], l[2]", item{"l": list(num("2"))}},
	"remove member":        {item{"m": object(item{"a": num("1"), "b": num("2")})}, "REMOVE m.a", item{"m": object(item{"b": num("2")})}},
	"add to number":        {item{"a": num("1")}, "ADD a :two", item{"a": num("3")}},
	"add makes number":     {nil, "ADD a :two", item{"a": num("2")}},
	"add to set":           {item{"ss": strs("red")}, "ADD ss :colours", item{"ss": strs("red", "green")}},
	"delete from set":      {item{"ss": strs("red", "blue")}, "DELETE ss :colours", item{"ss": strs("blue")}},
	"delete whole set":     {item{"ss": strs("red")}, "DELETE ss :colours", item{}},
	"all sections":         {item{"a": num("1"), "b": num("1"), "ss": strs("red", "blue")}, "SET c = :x REMOVE b ADD a :one DELETE ss :colours", item{"a": num("2"), "c": str("x"), "ss": strs("blue")}},
	"lower case":           {nil, "set a = :one remove b", item{"a": num("1")}},
	"2^53":                 {item{"a": num("9007199254740992")}, "SET a = a + :one", item{"a": num("9007199254740993")}},
}

var updateValues = item{
	":zero": num("0"), ":one": num("1"), ":two": num("2"), ":fifth": num("0.2"), ":x": str("x"),
	":list": list(str("x")), ":colours": strs("red", "green"), ":big": num("1e125"), ":bool": boolean(true),
}

// updateOf is an unconditional update that gives the new item back.
func (s *suite) updateOf(key, expression string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: item{"key": str(key)},
		UpdateExpression:          aws.String(expression),
		ExpressionAttributeNames:  used(map[string]string{"#data": "data", "#key": "key"}, expression),
		ExpressionAttributeValues: used(updateValues, expression),
		ReturnValues:              types.ReturnValueAllNew,
	}
}

func (s *suite) updates(t *testing.T) {
	for name, c := range updateCases {
		if s.ListsByPosition && (name == "remove elements" || name == "element behind end") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			key := newName()
			if c.before != nil {
				s.put(t, s.table, with(key, c.before))
			}
			out, err := s.db.UpdateItem(t.Context(), s.updateOf(key, c.expression))
			if err != nil {
				t.Fatal(err)
			}
			want := with(key, c.after)
			if !equalItems(out.Attributes, want) {
				t.Errorf("ALL_NEW is %v, want %v", plainItem(out.Attributes), plainItem(want))
			}
			if got := s.get(t, s.table, item{"key": str(key)}); !equalItems(got, want) {
				t.Errorf("the item is %v, want %v", plainItem(got), plainItem(want))
			}
		})
	}
}

// rejectedUpdateCases are invalid updates of the sample, with a part of the
// error's text.
var rejectedUpdateCases = map[string]string{
	"SET a = absent":                 "refers to an attribute that does not exist",
	"SET a = absent + :one":          "refers to an attribute that does not exist",
	"SET a = s + :one":               "incorrect data type",
	"SET a = :x + :one":              "Incorrect operand type",
	"SET absent.b = :one":            "document path provided in the update expression is invalid",
	"SET s.b = :one":                 "document path provided in the update expression is invalid",
	"REMOVE absent.b":                "document path provided in the update expression is invalid",
	"SET l = list_append(l, :one)":   "Incorrect operand type",
	"ADD s :one":                     "incorrect data type",
	"ADD a :x":                       "Incorrect operand type",
	"DELETE ss :one":                 "Incorrect operand type",
	"SET a = :one, a = :two":         "overlap",
	"SET m.a = :one REMOVE m":        "overlap",
	"SET m.a = :one, m[0] = :two":    "conflict",
	"SET #key = :x":                  "part of the key",
	"REMOVE #key":                    "part of the key",
	"SET a = n + :big REMOVE a":      "overlap",
	"SET data = :x":                  "reserved keyword",
	"SET a = key":                    "reserved keyword",
	"SET a :one":                     "",
	"SET a = ":                       "",
	"SET a = :one SET b = :two":      "",
	"a = :one":                       "",
	"SET a = :one,":                  "",
	"SET a = nosuchfunction(:one)":   "",
	"SET a = if_not_exists(a)":       "",
	"SET a = size(s)":                "",
	"SET a = :undefined":             "not defined",
	"SET #undefined = :one":          "not defined",
	"SET a = n + :big, b = :big - n": "",
}

func (s *suite) rejectedUpdates(t *testing.T) {
	key := newName()
	before := with(key, sample)
	s.put(t, s.table, before)
	for expression, text := range rejectedUpdateCases {
		if s.Lenient && expression == "REMOVE absent.b" {
			continue
		}
		t.Run(expression, func(t *testing.T) {
			_, err := s.db.UpdateItem(t.Context(), s.updateOf(key, expression))
			s.wantError(t, err, "ValidationException", text)
		})
	}
	if got := s.get(t, s.table, item{"key": str(key)}); !equalItems(got, before) {
		t.Errorf("rejected updates left %v", plainItem(got))
	}
}

func (s *suite) returnValues(t *testing.T) {
	before := item{"a": num("1"), "b": str("x"), "m": object(item{"p": num("1"), "q": num("2")})}
	for want, attrs := range map[types.ReturnValue]func(key string) item{
		types.ReturnValueNone:       func(string) item { return nil },
		types.ReturnValueAllOld:     func(key string) item { return with(key, before) },
		types.ReturnValueUpdatedOld: func(string) item { return item{"a": num("1"), "m": object(item{"p": num("1")})} },
		types.ReturnValueUpdatedNew: func(string) item {
			return item{"a": num("2"), "m": object(item{"p": num("2")}), "c": num("2")}
		},
		types.ReturnValueAllNew: func(key string) item {
			after := maps.Clone(before)
			after["a"], after["c"], after["m"] = num("2"), num("2"), object(item{"p": num("2"), "q": num("2")})
			return with(key, after)
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			key := newName()
			s.put(t, s.table, with(key, before))
			in := s.updateOf(key, "SET a = :two, m.p = :two, c = :two")
			in.ReturnValues = want
			out, err := s.db.UpdateItem(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if !equalItems(out.Attributes, attrs(key)) {
				t.Errorf("got %v, want %v", plainItem(out.Attributes), plainItem(attrs(key)))
			}
		})
	}
}

// numberCases are numbers as written and as read back.
var numberCases = map[string]string{
	"0": "0", "-0": "0", "1": "1", "+1": "1", "007": "7", "1.0": "1", "1.50": "1.5", "-2.5": "-2.5", ".5": "0.5",
	"1e3": "1000", "1E-3": "0.001", "9007199254740993": "9007199254740993",
	"12345678901234567890123456789012345678": "12345678901234567890123456789012345678",
	"0.00000000000000000001":                 "0.00000000000000000001",
}

func (s *suite) numbers(t *testing.T) {
	key := newName()
	for written, want := range numberCases {
		s.put(t, s.table, with(key, item{"n": num(written)}))
		got, ok := s.get(t, s.table, item{"key": str(key)})["n"].(*types.AttributeValueMemberN)
		if !ok || got.Value != want {
			t.Errorf("%s is read as %v, want %s", written, got, want)
		}
	}
	for written, text := range map[string]string{
		"abc": "numeric value", "": "numeric value", "1e126": "overflow", "1e-131": "underflow",
		"123456789012345678901234567890123456789": "38 significant digits",
	} {
		_, err := s.db.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(s.table), Item: with(key, item{"n": num(written)})})
		s.wantError(t, err, "ValidationException", text)
	}
}
