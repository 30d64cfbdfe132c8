package expr

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Projection is a parsed projection expression.
type Projection struct {
	paths []path
	refs  references
}

func (p *Projection) used() (Kind, *references) { return KindProjection, &p.refs }

func (p *Projection) validate(env Env) error {
	return env.checkPaths(KindProjection, p.paths)
}

// Apply gives the projected part of an item. What it gives shares its values
// with the item.
func (p *Projection) Apply(env Env, item Item) Item {
	out := Item{}
	var nested tree
	for _, target := range p.paths {
		name := env.name(target[0])
		if len(target) > 1 {
			nested.insert(env, target)
		} else if v, ok := item[name]; ok {
			out[name] = v
		}
	}
	for name, branch := range nested.names {
		if v := branch.project(item[name]); v != nil {
			out[name] = v
		}
	}
	return out
}

// tree holds several paths by their common beginnings. A tree without
// branches selects the whole value.
type tree struct {
	names   map[string]*tree
	indices map[int]*tree
}

func (t *tree) insert(env Env, p path) {
	for _, x := range p {
		var next *tree
		if x.name != "" {
			if t.names == nil {
				t.names = map[string]*tree{}
			}
			name := env.name(x)
			if next = t.names[name]; next == nil {
				next = &tree{}
				t.names[name] = next
			}
		} else {
			if t.indices == nil {
				t.indices = map[int]*tree{}
			}
			if next = t.indices[x.index]; next == nil {
				next = &tree{}
				t.indices[x.index] = next
			}
		}
		t = next
	}
}

// project cuts a value down to what the tree selects; nil when that is nothing.
func (t *tree) project(v types.AttributeValue) types.AttributeValue {
	if t.names == nil && t.indices == nil {
		return v
	}
	switch c := v.(type) {
	case *types.AttributeValueMemberM:
		out := Item{}
		for name, branch := range t.names {
			if part := branch.project(c.Value[name]); part != nil {
				out[name] = part
			}
		}
		if len(out) > 0 {
			return &types.AttributeValueMemberM{Value: out}
		}
	case *types.AttributeValueMemberL:
		if out := t.projectList(c.Value); len(out) > 0 {
			return &types.AttributeValueMemberL{Value: out}
		}
	}
	return nil
}

// projectList selects elements in their order and closes the gaps.
func (t *tree) projectList(l []types.AttributeValue) []types.AttributeValue {
	var indices []int
	for i := range t.indices {
		indices = append(indices, i)
	}
	slices.Sort(indices)
	var out []types.AttributeValue
	for _, i := range indices {
		if i >= len(l) {
			break
		}
		if part := t.indices[i].project(l[i]); part != nil {
			out = append(out, part)
		}
	}
	return out
}
