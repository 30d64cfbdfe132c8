package lockitem_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
	"github.com/lockstream/lockstream/internal/lockitem"
)

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func b(v string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(v)} }

func held() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"key":                        s("orders"),
		lockattr.OwnerName:           s("c#1"),
		lockattr.LeaseDuration:       s("20000"),
		lockattr.RecordVersionNumber: s("R1"),
		lockattr.Data:                b("payload"),
		lockattr.FencingToken:        n("1790000000000000"),
		lockattr.HolderLabel:         s("host/1"),
		lockattr.AcquiredAt:          n("1790000000000"),
		lockattr.LeaseUntil:          n("1790000020000"),
		lockattr.TTL:                 n("1790003620"),
		lockattr.LockOp:              s("acquire"),
	}
}

func with(m map[string]types.AttributeValue, attr string, v types.AttributeValue) map[string]types.AttributeValue {
	if v == nil {
		delete(m, attr)
	} else {
		m[attr] = v
	}
	return m
}

func TestDecodeReadsEveryAttribute(t *testing.T) {
	m := with(with(held(), lockattr.Paused, s("maintenance")), lockattr.StopBy, n("1790000001000"))
	it, err := lockitem.Decode(m)
	if err != nil {
		t.Fatal(err)
	}
	if it.Owner != "c#1" || it.Lease != 20*time.Second || it.RVN != "R1" || string(it.Data) != "payload" || it.Released ||
		it.Token != 1790000000000000 || !it.HasToken || it.Label != "host/1" || it.AcquiredAt.UnixMilli() != 1790000000000 ||
		it.LeaseUntil.UnixMilli() != 1790000020000 || it.TTL.Unix() != 1790003620 || it.Op != "acquire" ||
		!it.Paused || it.PauseNote != "maintenance" || it.StopBy.UnixMilli() != 1790000001000 {
		t.Errorf("decoded %+v", it)
	}
}

func TestDecodeReadsForeignItems(t *testing.T) {
	// What the AWS client for Java leaves: no token, no label; released items keep their owner.
	java := map[string]types.AttributeValue{
		"key": s("orders"), lockattr.OwnerName: s("host-uuid"), lockattr.LeaseDuration: s("20000"),
		lockattr.RecordVersionNumber: s("6f0c…"), lockattr.IsReleased: s("1"),
	}
	it, err := lockitem.Decode(java)
	if err != nil || !it.Released || it.HasToken || it.Lease != 20*time.Second {
		t.Errorf("java item: %+v, %v", it, err)
	}
	goPort := with(with(held(), lockattr.LeaseDuration, s("20s")), lockattr.Data, &types.AttributeValueMemberNULL{Value: true})
	it, err = lockitem.Decode(goPort)
	if err != nil || it.Lease != 20*time.Second || it.Data != nil {
		t.Errorf("go item: %+v, %v", it, err)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	for _, tc := range []struct {
		attr string
		bad  types.AttributeValue
	}{
		{lockattr.OwnerName, n("1")},
		{lockattr.LeaseDuration, n("20000")},
		{lockattr.LeaseDuration, s("")},
		{lockattr.LeaseDuration, s("-1s")},
		{lockattr.LeaseDuration, s("soon")},
		{lockattr.LeaseDuration, nil}, // held: nobody could tell when it expires
		{lockattr.RecordVersionNumber, b("R1")},
		{lockattr.RecordVersionNumber, s("")},
		{lockattr.Data, s("text")},
		{lockattr.IsReleased, &types.AttributeValueMemberBOOL{Value: true}},
		{lockattr.IsReleased, s("0")},
		{lockattr.IsReleased, s("")},
		{lockattr.FencingToken, s("17")},
		{lockattr.FencingToken, n("1.5")},
		{lockattr.FencingToken, n("-1")},
		{lockattr.FencingToken, n("9007199254740993")},
		{lockattr.FencingToken, n("1e30")},
		{lockattr.HolderLabel, &types.AttributeValueMemberM{}},
		{lockattr.AcquiredAt, s("now")},
		{lockattr.LeaseUntil, &types.AttributeValueMemberL{}},
		{lockattr.TTL, s("1790003620")},
		{lockattr.LockOp, &types.AttributeValueMemberSS{Value: []string{"x"}}},
		{lockattr.Paused, &types.AttributeValueMemberNS{Value: []string{"1"}}},
		{lockattr.StopBy, &types.AttributeValueMemberBS{}},
	} {
		_, err := lockitem.Decode(with(held(), tc.attr, tc.bad))
		var typeErr *lockitem.TypeError
		if !errors.As(err, &typeErr) || typeErr.Attribute != tc.attr {
			t.Errorf("%s = %#v: got error %v, want a TypeError of it", tc.attr, tc.bad, err)
		}
	}
}

func TestDecodeRefusesOrdinaryItems(t *testing.T) {
	for _, m := range []map[string]types.AttributeValue{
		nil,
		{"key": s("orders")},
		with(held(), lockattr.RecordVersionNumber, nil),
	} {
		if _, err := lockitem.Decode(m); !errors.Is(err, lockitem.ErrNotALock) {
			t.Errorf("Decode(%v) = %v, want ErrNotALock", m, err)
		}
	}
}

func TestParseLease(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"20000": 20 * time.Second, "20s": 20 * time.Second, "1m30s": 90 * time.Second, "0": 0,
		"9223372036854775807": math.MaxInt64, "18446744073709551615": math.MaxInt64, "1.5s": 1500 * time.Millisecond,
	} {
		if got, err := lockitem.ParseLease(in); err != nil || got != want {
			t.Errorf("ParseLease(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "-1s", "20 000", "1e3", "∞", "99999999999999999999"} {
		if got, err := lockitem.ParseLease(in); err == nil {
			t.Errorf("ParseLease(%q) = %v, want an error", in, got)
		}
	}
}

func FuzzParseLease(f *testing.F) {
	for _, in := range []string{"20000", "20s", "-1s", "", "9223372036854775808", "1h1ns"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if d, err := lockitem.ParseLease(in); err == nil && d < 0 {
			t.Errorf("ParseLease(%q) = %v without an error", in, d)
		}
	})
}

// FuzzDecode puts a value of any type under any attribute: the answer is an item, or one
// of the two errors, and never a value that the writer did not put there.
func FuzzDecode(f *testing.F) {
	f.Add(uint8(0), uint8(0), "x")
	f.Add(uint8(1), uint8(1), "-5")
	f.Add(uint8(4), uint8(0), "1")
	f.Fuzz(func(t *testing.T, attr, kind uint8, v string) {
		all := lockattr.All()
		name := all[int(attr)%len(all)]
		it, err := lockitem.Decode(with(held(), name, anyValue(kind, v)))
		var typeErr *lockitem.TypeError
		switch {
		case err == nil:
			if it.RVN == "" || it.Lease < 0 || it.Token < 0 || it.Token > lockitem.MaxToken {
				t.Errorf("%s: accepted %+v", name, it)
			}
			if name == lockattr.IsReleased && it.Released != (kind%9 == 0 && v == "1") && kind%9 != 8 {
				t.Errorf("released = %v for kind %d value %q", it.Released, kind, v)
			}
		case errors.Is(err, lockitem.ErrNotALock):
			if name != lockattr.RecordVersionNumber {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.As(err, &typeErr):
			t.Errorf("%s: error of another kind: %v", name, err)
		}
	})
}

func anyValue(kind uint8, v string) types.AttributeValue {
	switch kind % 9 {
	case 0:
		return s(v)
	case 1:
		return n(v)
	case 2:
		return b(v)
	case 3:
		return &types.AttributeValueMemberBOOL{Value: v != ""}
	case 4:
		return &types.AttributeValueMemberNULL{Value: true}
	case 5:
		return &types.AttributeValueMemberM{Value: held()}
	case 6:
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{s(v)}}
	case 7:
		return &types.AttributeValueMemberSS{Value: []string{v}}
	}
	return nil
}

func TestLayout(t *testing.T) {
	l := lockitem.Layout{Partition: "pk", Sort: "sk", SortValue: "lock", Prefix: "lock:"}
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	// Cases: L2
	for _, name := range []string{"a", "= # : \" ' ; , space", "emoji 🔒", "nul \x00 inside", "'; DROP TABLE locks; --", strings.Repeat("n", 2043)} {
		if err := l.CheckName(name); err != nil {
			t.Errorf("CheckName(%q): %v", name, err)
		}
		if got, ok := l.Name(l.Key(name)); !ok || got != name {
			t.Errorf("Name(Key(%q)) = %q, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "bad \xff", strings.Repeat("n", 2044)} {
		if err := l.CheckName(name); !errors.Is(err, lockitem.ErrInvalidName) {
			t.Errorf("CheckName(%.10q…) = %v", name, err)
		}
	}
	for _, key := range []map[string]types.AttributeValue{
		{"pk": s("other:x"), "sk": s("lock")},
		{"pk": s("lock:"), "sk": s("lock")},
		{"pk": s("lock:x"), "sk": s("order")},
		{"pk": n("1"), "sk": s("lock")},
		{"pk": s("lock:x")},
		nil,
	} {
		if name, ok := l.Name(key); ok {
			t.Errorf("Name(%v) = %q, want none", key, name)
		}
	}
}

func TestLayoutValidate(t *testing.T) {
	// Cases: L3
	for _, l := range []lockitem.Layout{
		{},
		{Partition: lockattr.IsReleased},
		{Partition: lockattr.TTL},
		{Partition: "pk", Sort: lockattr.Data, SortValue: "x"},
		{Partition: "pk", Sort: "pk", SortValue: "x"},
		{Partition: "pk", Sort: "sk"},
		{Partition: "pk", SortValue: "x"},
		{Partition: "pk", Sort: "sk", SortValue: strings.Repeat("x", 1025)},
		{Partition: "pk", Sort: "sk", SortValue: "\xff"},
		{Partition: "pk", Prefix: strings.Repeat("x", 2048)},
		{Partition: strings.Repeat("x", 256)},
	} {
		if err := l.Validate(); err == nil {
			t.Errorf("%+v is valid", l)
		}
	}
	if err := (lockitem.Layout{Partition: lockattr.Key}).Validate(); err != nil {
		t.Error(err)
	}
}
