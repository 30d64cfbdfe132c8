package expr

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// set holds the elements of a set of any type as strings, in their order.
type set []string

// setOf gives the elements of a set value.
func setOf(v types.AttributeValue) (set, bool) {
	switch x := v.(type) {
	case *types.AttributeValueMemberSS:
		return x.Value, true
	case *types.AttributeValueMemberNS:
		return x.Value, true
	case *types.AttributeValueMemberBS:
		s := make(set, len(x.Value))
		for i, b := range x.Value {
			s[i] = string(b)
		}
		return s, true
	}
	return nil, false
}

// value makes a set value of the type of like; nil when the set is empty.
func (s set) value(like types.AttributeValue) types.AttributeValue {
	if len(s) == 0 {
		return nil
	}
	switch like.(type) {
	case *types.AttributeValueMemberSS:
		return &types.AttributeValueMemberSS{Value: s}
	case *types.AttributeValueMemberNS:
		return &types.AttributeValueMemberNS{Value: s}
	}
	b := make([][]byte, len(s))
	for i, e := range s {
		b[i] = []byte(e)
	}
	return &types.AttributeValueMemberBS{Value: b}
}

func (s set) equal(t set) bool {
	a, b := slices.Clone(s), slices.Clone(t)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// union gives the elements of s and then those of t that s lacks.
func (s set) union(t set) set {
	out := slices.Clone(s)
	for _, e := range t {
		if !slices.Contains(s, e) {
			out = append(out, e)
		}
	}
	return out
}

// minus gives the elements of s that t lacks.
func (s set) minus(t set) set {
	var out set
	for _, e := range s {
		if !slices.Contains(t, e) {
			out = append(out, e)
		}
	}
	return out
}

// hasDuplicate tells whether an element occurs twice.
func (s set) hasDuplicate() bool {
	t := slices.Clone(s)
	slices.Sort(t)
	return len(slices.Compact(t)) != len(s)
}
