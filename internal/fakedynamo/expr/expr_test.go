package expr

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

func list(l ...types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberL{Value: l}
}

func object(m Item) types.AttributeValue { return &types.AttributeValueMemberM{Value: m} }

func TestNormalizeNumber(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "00": "0", "0.0": "0", "0e500": "0", "1": "1", "-1": "-1", "+1": "1", "01": "1", "1.": "1", ".5": "0.5",
		"-.5": "-0.5", "1.10": "1.1", "1e2": "100", "1E+2": "100", "12e-1": "1.2", "-12e-3": "-0.012", "1e-130": "0." + strings.Repeat("0", 129) + "1",
		nines: nines, "9.9e125": "99" + strings.Repeat("0", 124), "123456789012345678": "123456789012345678", "1234567890123456789": "1234567890123456789",
		"-9007199254740993": "-9007199254740993", nines + "000": nines + "000", "0.1" + strings.Repeat("0", 60): "0.1",
	} {
		if got, err := normalizeNumber(in); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", in, got, err, want)
		}
	}
	for in, text := range map[string]string{
		"": "converted", "-": "converted", ".": "converted", "e5": "converted", "1e": "converted", "1e+": "converted", "1x": "converted", "0x1": "converted",
		"1.2.3": "converted", "--1": "converted", " 1": "converted", "1_0": "converted", "NaN": "converted", "Infinity": "converted", "1e5.0": "converted",
		"1e126": "overflow", "-1e126": "overflow", "1e99999999999": "overflow", "1e-131": "underflow", "1e-99999999999": "underflow",
		nines + "1": "38 significant", "0." + nines + "1": "38 significant",
	} {
		if got, err := normalizeNumber(in); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is %s, %v, want an error with %q", in, got, err, text)
		}
	}
}

// ordered are canonical numbers from small to large.
var ordered = []string{
	"-9" + strings.Repeat("0", 125), "-100", "-99.5", "-99", "-10.1", "-10", "-9", "-1", "-0.5", "-0.05", "-0.00001", "0",
	"0.00001", "0.05", "0.5", "1", "1.5", "9", "10", "10.1", "99", "99.5", "100", "9007199254740992", "9007199254740993", "1" + strings.Repeat("0", 125),
}

func TestNumbersAreOrdered(t *testing.T) {
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := compareNumbers(a, b); got != want {
				t.Errorf("%s and %s compare as %d", a, b, got)
			}
			x, errX := SortableNumber(a)
			y, errY := SortableNumber(b)
			if errX != nil || errY != nil || strings.Compare(x, y) != want {
				t.Errorf("%s and %s are encoded as %q and %q, %v, %v", a, b, x, y, errX, errY)
			}
		}
	}
}

func TestAddNumbers(t *testing.T) {
	for _, c := range []struct{ a, b, sum, difference string }{
		{"1", "2", "3", "-1"},
		{"0.1", "0.2", "0.3", "-0.1"},
		{"9007199254740993", "1", "9007199254740994", "9007199254740992"},
		{"999999999999999999", "1", "1000000000000000000", "999999999999999998"},
		{"1e20", "1e-10", "100000000000000000000.0000000001", "99999999999999999999.9999999999"},
		{"-5", "-5", "-10", "0"},
	} {
		if got, err := addNumbers(c.a, c.b, false); err != nil || got != c.sum {
			t.Errorf("%s + %s = %s, %v, want %s", c.a, c.b, got, err, c.sum)
		}
		if got, err := addNumbers(c.a, c.b, true); err != nil || got != c.difference {
			t.Errorf("%s - %s = %s, %v, want %s", c.a, c.b, got, err, c.difference)
		}
	}
	if got, err := addNumbers("9e125", "9e125", false); err == nil || !strings.Contains(err.Error(), "overflow") {
		t.Errorf("too large a sum is %s, %v", got, err)
	}
	if got, err := addNumbers("1e125", "1", false); err == nil || !strings.Contains(err.Error(), "38 significant") {
		t.Errorf("too precise a sum is %s, %v", got, err)
	}
}

// syntaxCases are expressions of each kind that do not parse, with a part of
// the error.
var syntaxCases = map[Kind]map[string]string{
	KindCondition: {
		"":                                "can not be empty",
		"  ":                              "can not be empty",
		"a":                               `Syntax error; token: "<EOF>", near: "a"`,
		"a =":                             "Syntax error",
		"= :v":                            "Syntax error",
		"a == :v":                         "Syntax error",
		"a = :v AND":                      "Syntax error",
		"a = :v b = :v":                   `Syntax error; token: "b", near: ":v b ="`,
		"a = :v)":                         "Syntax error",
		"(a = :v":                         "Syntax error",
		"a BETWEEN :v":                    "Syntax error",
		"a BETWEEN :v AND":                "Syntax error",
		"a IN ()":                         "Syntax error",
		"a IN :v":                         "Syntax error",
		"a[x] = :v":                       "Syntax error",
		"a[-1] = :v":                      "Syntax error",
		"a. = :v":                         "Syntax error",
		"a ! :v":                          `token: "!"`,
		"# = :v":                          `token: "#"`,
		"a = 5":                           "Syntax error",
		"a = 'x'":                         "Syntax error",
		"1a = :v":                         "Syntax error",
		"((a = :v))":                      "redundant parentheses",
		"key = :v":                        "reserved keyword; reserved keyword: key",
		"a.Data = :v":                     "reserved keyword; reserved keyword: Data",
		"ttl = :v":                        "reserved keyword",
		"owner = :v":                      "reserved keyword",
		"bucket = :v":                     "reserved keyword",
		"name = :v":                       "reserved keyword",
		"status = :v":                     "reserved keyword",
		"exists(a)":                       "Invalid function name; function: exists",
		"Attribute_Exists(a)":             "Invalid function name",
		"attribute_exists()":              "Syntax error",
		"attribute_exists(a, b)":          "Incorrect number of operands",
		"attribute_exists(:v)":            "requires a document path",
		"begins_with(a)":                  "Incorrect number of operands",
		"size(a)":                         "not allowed to be used this way",
		"size(a, b) = :v":                 "Incorrect number of operands",
		"if_not_exists(a, :v) = :v":       "not allowed in a condition",
		"a = attribute_exists(b)":         "not allowed to be used this way",
		"a = a":                           "distinct from the remaining operands",
		"contains(a.b, a.b)":              "distinct from the remaining operands",
		"NOT":                             "Syntax error",
		strings.Repeat("(", 5000):         "maximum allowed size",
		strings.Repeat("NOT ", 500) + "a": "too many operators",
		strings.Repeat("(", 500) + "a":    "too many operators",
		"a IN (" + strings.Repeat(":v,", 100) + ":v)": "too many operands",
	},
	KindUpdate: {
		"":                             "can not be empty",
		"a = :v":                       "Syntax error",
		"SET":                          "Syntax error",
		"SET a":                        "Syntax error",
		"SET a = ":                     "Syntax error",
		"SET a = :v,":                  "Syntax error",
		"SET a = :v b = :v":            "Syntax error",
		"SET a = :v SET b = :v":        `The "SET" section can only be used once`,
		"REMOVE a REMOVE b":            `The "REMOVE" section can only be used once`,
		"SET a = :v + :v + :v":         "Syntax error",
		"SET a = (b + :v":              "Syntax error",
		"ADD a b":                      "Syntax error",
		"ADD a":                        "Syntax error",
		"REMOVE :v":                    "Syntax error",
		"SET a = size(b)":              "not allowed in an update expression",
		"SET a = attribute_exists(b)":  "not allowed in an update expression",
		"SET a = f(b)":                 "Invalid function name",
		"SET a = if_not_exists(:v, b)": "requires a document path",
		"SET a = list_append(b)":       "Incorrect number of operands",
		"SET data = :v":                "reserved keyword",
	},
	KindProjection: {"": "can not be empty", "a,": "Syntax error", "a b": "Syntax error", ":v": "Syntax error", "a, size": "reserved keyword", "a[": "Syntax error"},
}

func TestSyntaxErrors(t *testing.T) {
	var c Cache
	for kind, cases := range syntaxCases {
		for source, text := range cases {
			var err error
			switch kind {
			case KindUpdate:
				_, err = c.Update(source)
			case KindProjection:
				_, err = c.Projection(source)
			default:
				_, err = c.Condition(kind, source)
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(e.Message, text) || !strings.HasPrefix(e.Message, "Invalid "+string(kind)+": ") {
				t.Errorf("%s %.40q gives %v, want %q", kind, source, err, text)
			}
		}
	}
}

// TestEnvCheck looks at what is wrong only together with the placeholders.
func TestEnvCheck(t *testing.T) {
	values := Item{":n": num("1"), ":s": str("x"), ":t": &types.AttributeValueMemberBOOL{Value: true}, ":l": list(), ":two": num("2"), ":type": str("S"), ":notype": str("X")}
	names := map[string]string{"#a": "a", "#b": "b"}
	for source, text := range map[string]string{
		"a = :n":                     "",
		"a = :undefined":             "not defined; attribute value: :undefined",
		"#undefined = :n":            "not defined; attribute name: #undefined",
		"a < :t":                     "operator or function: <, operand type: BOOL",
		"a >= :l":                    "Incorrect operand type",
		"begins_with(a, :n)":         "operator or function: begins_with, operand type: N",
		"size(:n) = :n":              "operator or function: size, operand type: N",
		"attribute_type(a, :n)":      "operand type: N",
		"attribute_type(a, :notype)": "Invalid attribute type name found; type: X",
		"attribute_type(a, :type)":   "",
		"a BETWEEN :two AND :n":      "greater than or equal to lower bound",
		"a BETWEEN :n AND :s":        "same data type",
		"a BETWEEN :n AND :two":      "",
		"NOT (a = :n OR b > :t)":     "Incorrect operand type",
		"a = :t AND #b <> :l":        "",
	} {
		checkIn(t, source, text, func(c *Cache) (Expression, error) { return c.Condition(KindCondition, source) }, names, values)
	}
	for source, text := range map[string]string{
		"SET #a = :n, a = :s":               "overlap with each other; must remove or rewrite one of these paths; path one: [a], path two: [a]",
		"SET a.b = :n REMOVE a.b.c":         "overlap",
		"SET a.b = :n, a[0] = :n":           "conflict with each other; must remove or rewrite one of these paths; path one: [a, b], path two: [a, [0]]",
		"SET a[0] = :n, a[1] = :n":          "",
		"SET a = b + :s":                    "operator or function: +, operand type: S",
		"SET a = list_append(b, :n)":        "operator or function: list_append, operand type: N",
		"SET a = if_not_exists(b, :l)":      "",
		"ADD a :s":                          "operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND",
		"DELETE a :n":                       "operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND",
		"SET a = if_not_exists(a, :s) - :s": "Incorrect operand type",
	} {
		checkIn(t, source, text, func(c *Cache) (Expression, error) { return c.Update(source) }, names, values)
	}
}

// checkIn checks one expression with the placeholders that occur in it.
func checkIn(t *testing.T, source, text string, parse func(*Cache) (Expression, error), names map[string]string, values Item) {
	t.Helper()
	x, err := parse(&Cache{})
	if err != nil {
		t.Errorf("%s: %v", source, err)
		return
	}
	env := Env{Names: map[string]string{}, Values: Item{}}
	_, refs := x.used()
	for _, n := range refs.names {
		if v, ok := names[n]; ok {
			env.Names[n] = v
		}
	}
	for _, n := range refs.values {
		if v, ok := values[n]; ok {
			env.Values[n] = v
		}
	}
	if err := env.Check(x); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s gives %v, want %q", source, err, text)
	}
	if text != "" {
		return
	}
	env.Values[":unused"] = num("1")
	if err := env.Check(x); err == nil || err.Error() != "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}" {
		t.Errorf("%s with an unused value gives %v", source, err)
	}
	env.Names["#unused"] = "x"
	if err := env.Check(x); err == nil || err.Error() != "Value provided in ExpressionAttributeNames unused in expressions: keys: {#unused}" {
		t.Errorf("%s with an unused name gives %v", source, err)
	}
}

func TestKeyRange(t *testing.T) {
	env := Env{Values: Item{":p": str("p"), ":n": num("1")}, Names: map[string]string{"#k": "key"}}
	for source, want := range map[string]string{
		"#k = :p":                             "",
		"#k = :p AND s = :n":                  "=",
		"s < :n AND #k = :p":                  "<",
		"(#k = :p) AND (s BETWEEN :n AND :n)": "BETWEEN",
		"#k = :p AND begins_with(s, :p)":      "begins_with",
		"s = :n":                              "error: missed key schema element: key",
		"#k > :p":                             "error: not supported",
		"#k = :p OR s = :n":                   "error: Invalid operator",
		"#k = :p AND s <> :n":                 "error: Invalid operator",
		"#k = :p AND NOT s = :n":              "error: Invalid operator",
		"#k = :p AND attribute_exists(s)":     "error: Invalid operator",
		"#k = :p AND s = :n AND s = :n":       "error: one condition per key",
		"#k = :p AND t = :n":                  "error: missed key schema element",
		"#k = s":                              "error: not supported",
		"#k = :p AND s.a = :n":                "error: not supported",
		"#k = :p AND size(s) = :n":            "error: not supported",
	} {
		c, err := parseCondition(KindKeyCondition, source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		r, err := c.KeyRange(env, "key", "s")
		text, wantError := strings.CutPrefix(want, "error: ")
		switch {
		case wantError && (err == nil || !strings.Contains(err.Error(), text)):
			t.Errorf("%s gives %v, want %q", source, err, text)
		case !wantError && (err != nil || r.Op != want || !Equal(r.Partition, str("p"))):
			t.Errorf("%s gives %+v, %v", source, r, err)
		}
	}
}

func TestCacheParsesOnce(t *testing.T) {
	var c Cache
	first, err := c.Condition(KindCondition, "a = :v")
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Condition(KindCondition, "a = :v")
	if err != nil || first != again {
		t.Errorf("parsed twice, %v", err)
	}
	filter, err := c.Condition(KindFilter, "a = :v")
	if err != nil || filter == first {
		t.Errorf("a filter is the condition, %v", err)
	}
	for i := range 2 * cacheLimit {
		if _, err := c.Condition(KindCondition, "a = :v"+strings.Repeat("x", i%3000)+strings.Repeat("y", i/3000)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.conditions.m); n > cacheLimit {
		t.Errorf("the cache has %d entries", n)
	}
}

func TestReservedWords(t *testing.T) {
	for _, w := range []string{"key", "data", "ttl", "shard", "bucket", "owner", "name", "status", "lock", "token", "release", "item", "Time", "ZONE", "abort"} {
		if !IsReserved(w) {
			t.Errorf("%s is not reserved", w)
		}
	}
	for _, w := range []string{"ownerName", "leaseDuration", "recordVersionNumber", "isReleased", "fencingToken", "paused", "id", "pk", "sort", ""} {
		if IsReserved(w) {
			t.Errorf("%s is reserved", w)
		}
	}
	if len(reserved) != 573 {
		t.Errorf("%d words are reserved", len(reserved))
	}
}

func TestApplyLeavesTheOldItem(t *testing.T) {
	old := Item{"m": object(Item{"a": num("1"), "l": list(num("1"), num("2"))}), "s": &types.AttributeValueMemberSS{Value: []string{"x"}}}
	before := CloneItem(old)
	var c Cache
	u, err := c.Update("SET m.a = :v, m.l[0] = :v, m.l[9] = :v, n.#x = :v REMOVE m.l[1] ADD s :s")
	if err != nil {
		t.Fatal(err)
	}
	env := Env{Names: map[string]string{"#x": "x.y"}, Values: Item{":v": num("7"), ":s": &types.AttributeValueMemberSS{Value: []string{"y"}}}}
	if _, err := u.Apply(env, old); err == nil {
		t.Error("a member of nothing was set")
	}
	if !EqualItems(old, before) {
		t.Errorf("the failed update changed the old item to %v", old)
	}
	u, err = c.Update("SET m.a = :v, m.l[0] = :v, m.l[9] = :v, #x = :v REMOVE m.l[1] ADD s :s")
	if err != nil {
		t.Fatal(err)
	}
	got, err := u.Apply(env, old)
	want := Item{
		"m": object(Item{"a": num("7"), "l": list(num("7"), num("7"))}), "x.y": num("7"),
		"s": &types.AttributeValueMemberSS{Value: []string{"y", "x"}},
	}
	if err != nil || !EqualItems(got, want) || !EqualItems(old, before) {
		t.Errorf("the update gives %v, %v, and leaves %v", got, err, old)
	}
}

func TestCheckRejectsValues(t *testing.T) {
	deep := num("1")
	for range 40 {
		deep = list(deep)
	}
	for name, v := range map[string]types.AttributeValue{
		"nil": nil, "typed nil": (*types.AttributeValueMemberS)(nil), "nil in list": list(nil), "nil in map": object(Item{"a": nil}),
		"false null": &types.AttributeValueMemberNULL{}, "empty set": &types.AttributeValueMemberNS{}, "duplicates": &types.AttributeValueMemberNS{Value: []string{"1", "1.0"}},
		"duplicate bytes": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {1}}}, "depth": deep, "number": num("x"), "number in set": &types.AttributeValueMemberNS{Value: []string{"x"}},
		"unknown": &types.UnknownUnionMember{}, "no name": object(Item{"": num("1")}),
	} {
		if got, err := Check(v); err == nil {
			t.Errorf("%s passes as %v", name, got)
		}
	}
}

// FuzzParse looks for inputs on which parsing or evaluation does not end well.
func FuzzParse(f *testing.F) {
	for kind, cases := range syntaxCases {
		for source := range cases {
			f.Add(string(kind), source)
		}
	}
	f.Add("ConditionExpression", "(a.b[0] = :v OR NOT #n BETWEEN size(c) AND (:v)) AND x IN (:v, y)")
	f.Add("UpdateExpression", "SET a = (b + :v), c[1].#n = list_append(if_not_exists(c, :v), :v) REMOVE d ADD e :v DELETE f :v")
	env := Env{Names: map[string]string{"#n": "n"}, Values: Item{":v": list(num("1"))}}
	it := Item{"a": object(Item{"b": list(num("1"))}), "c": list(list())}
	f.Fuzz(func(t *testing.T, kind, source string) {
		var c Cache
		if u, err := c.Update(source); err == nil && env.Check(u) == nil {
			if out, err := u.Apply(env, it); err == nil {
				u.Targets().Apply(env, out)
			}
		}
		if p, err := c.Projection(source); err == nil && env.Check(p) == nil {
			p.Apply(env, it)
		}
		if x, err := c.Condition(Kind(kind), source); err == nil && env.Check(x) == nil {
			x.Match(env, it)
			_, _ = x.KeyRange(env, "a", "c")
		}
	})
}
