package expr

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var (
	errTarget  = &Error{"The document path provided in the update expression is invalid for update"}
	errMissing = &Error{"The provided expression refers to an attribute that does not exist in the item"}
	errType    = &Error{"An operand in the update expression has an incorrect data type"}
)

// Update is a parsed update expression.
type Update struct {
	refs references
	// actions are in the order in which they can be applied one by one: list
	// elements are appended in the order of their indices, and removed last
	// and from the end, because removing shifts the rest.
	actions []action
	paths   []path
}

func (u *Update) used() (Kind, *references) { return KindUpdate, &u.refs }

// prepare sorts the actions and collects their targets.
func (u *Update) prepare() {
	for _, a := range u.actions {
		u.paths = append(u.paths, a.path)
	}
	slices.SortStableFunc(u.actions, func(a, b action) int {
		x, y := a.section == "REMOVE", b.section == "REMOVE"
		switch {
		case x != y:
			if y {
				return -1
			}
			return 1
		case x:
			return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(lastIndex(b), lastIndex(a)))
		}
		return cmp.Compare(lastIndex(a), lastIndex(b))
	})
}

// lastIndex is the index that a path ends with, or 0.
func lastIndex(a action) int { return a.path[len(a.path)-1].index }

// Changes tells whether the update names the top-level attribute as a target.
func (u *Update) Changes(env Env, attribute string) bool {
	return slices.ContainsFunc(u.paths, func(p path) bool { return env.name(p[0]) == attribute })
}

// Targets selects the attributes that the update names as targets.
func (u *Update) Targets() *Projection { return &Projection{paths: u.paths} }

// Apply gives the item as it is after the update; item itself stays as it is.
// The request must have passed [Env.Check].
func (u *Update) Apply(env Env, item Item) (Item, error) {
	out := maps.Clone(item)
	if out == nil {
		out = Item{}
	}
	for _, a := range u.actions {
		v, err := a.result(env, item)
		if err != nil {
			return nil, err
		}
		if err := editMap(env, out, a.path, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// result is the new value of the action's target; nil for none.
func (a action) result(env Env, item Item) (types.AttributeValue, error) {
	switch a.section {
	case "REMOVE":
		return nil, nil
	case "SET":
		return a.operand.compute(env, item)
	}
	old, arg := env.lookup(item, a.path), env.Values[a.operand.value]
	x, isSet := setOf(arg)
	y, wasSet := setOf(old)
	switch {
	case a.section == "DELETE" && old == nil:
		return nil, nil
	case old == nil:
		return arg, nil
	case isSet && wasSet && TypeOf(old) == TypeOf(arg):
		if a.section == "ADD" {
			return y.union(x).value(old), nil
		}
		return y.minus(x).value(old), nil
	case a.section == "ADD" && !isSet:
		return add(old, arg, false)
	}
	return nil, errType
}

// compute evaluates an operand of SET on the item as it was.
func (o *operand) compute(env Env, item Item) (types.AttributeValue, error) {
	switch {
	case o.path != nil:
		v := env.lookup(item, o.path)
		if v == nil {
			return nil, errMissing
		}
		return v, nil
	case o.value != "":
		return env.Values[o.value], nil
	case o.op == "if_not_exists":
		if v := env.lookup(item, o.args[0].path); v != nil {
			return v, nil
		}
		return o.args[1].compute(env, item)
	}
	left, err := o.args[0].compute(env, item)
	if err != nil {
		return nil, err
	}
	right, err := o.args[1].compute(env, item)
	if err != nil {
		return nil, err
	}
	if o.op == "list_append" {
		return appendLists(left, right)
	}
	return add(left, right, o.op == "-")
}

func appendLists(a, b types.AttributeValue) (types.AttributeValue, error) {
	x, okA := a.(*types.AttributeValueMemberL)
	y, okB := b.(*types.AttributeValueMemberL)
	if !okA || !okB {
		return nil, errType
	}
	return &types.AttributeValueMemberL{Value: slices.Concat(x.Value, y.Value)}, nil
}

func add(a, b types.AttributeValue, subtract bool) (types.AttributeValue, error) {
	x, okA := a.(*types.AttributeValueMemberN)
	y, okB := b.(*types.AttributeValueMemberN)
	if !okA || !okB {
		return nil, errType
	}
	sum, err := addNumbers(x.Value, y.Value, subtract)
	if err != nil {
		return nil, err
	}
	return &types.AttributeValueMemberN{Value: sum}, nil
}

// editMap puts v at the path, or removes what is there when v is nil. The map
// m belongs to the caller; what lies below is copied before it is changed.
func editMap(env Env, m Item, p path, v types.AttributeValue) error {
	if p[0].name == "" {
		return errTarget
	}
	name := env.name(p[0])
	if len(p) > 1 {
		child, err := editChild(env, m[name], p[1:], v)
		if err != nil {
			return err
		}
		m[name] = child
		return nil
	}
	if v == nil {
		delete(m, name)
	} else {
		m[name] = v
	}
	return nil
}

func editChild(env Env, parent types.AttributeValue, p path, v types.AttributeValue) (types.AttributeValue, error) {
	switch c := parent.(type) {
	case *types.AttributeValueMemberM:
		m := maps.Clone(c.Value)
		if m == nil {
			m = Item{}
		}
		return &types.AttributeValueMemberM{Value: m}, editMap(env, m, p, v)
	case *types.AttributeValueMemberL:
		if p[0].name != "" {
			return nil, errTarget
		}
		l, err := editList(env, slices.Clone(c.Value), p, v)
		return &types.AttributeValueMemberL{Value: l}, err
	}
	return nil, errTarget
}

func editList(env Env, l []types.AttributeValue, p path, v types.AttributeValue) ([]types.AttributeValue, error) {
	i := p[0].index
	inside := i < len(l)
	switch {
	case len(p) > 1 && !inside:
		return nil, errTarget
	case len(p) > 1:
		child, err := editChild(env, l[i], p[1:], v)
		if err != nil {
			return nil, err
		}
		l[i] = child
	case v == nil && inside:
		return slices.Delete(l, i, i+1), nil
	case inside:
		l[i] = v
	case v != nil:
		return append(l, v), nil
	}
	return l, nil
}
