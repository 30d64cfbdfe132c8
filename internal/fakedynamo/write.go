package fakedynamo

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// maxItem is the service's limit on an item, in bytes.
const maxItem = 400 << 10

// verb is what a write does with an item.
type verb int

const (
	verbPut verb = iota
	verbUpdate
	verbDelete
	verbCheck
)

// write is a checked write on one item, of a request of its own or as a part
// of a transaction.
type write struct {
	verb  verb
	table string
	attrs expr.Item // the key, or for a put the whole item
	env   expr.Env
	cond  *expr.Condition // nil for none
	// update is nil for none; an update without one only makes the item exist.
	update   *expr.Update
	oldOnErr bool
}

// writeInput is what the inputs of all writes have in common.
type writeInput struct {
	verb      verb
	table     *string
	attrs     expr.Item
	condition *string
	update    *string
	names     map[string]string
	values    expr.Item
	onFailure types.ReturnValuesOnConditionCheckFailure
}

// prepare checks what can be checked without the table, and copies what the
// caller could change.
func (s *Server) prepare(in writeInput) (*write, error) {
	name, err := tableName(in.table)
	if err != nil {
		return nil, err
	}
	w := &write{
		verb: in.verb, table: name,
		oldOnErr: in.onFailure == types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var exprs []expr.Expression
	if in.condition != nil {
		if w.cond, err = s.cache.Condition(expr.KindCondition, *in.condition); err != nil {
			return nil, invalidExpr(err)
		}
		exprs = append(exprs, w.cond)
	}
	if in.update != nil {
		if w.update, err = s.cache.Update(*in.update); err != nil {
			return nil, invalidExpr(err)
		}
		exprs = append(exprs, w.update)
	}
	if w.env, err = newEnv(in.names, in.values, exprs); err != nil {
		return nil, err
	}
	if in.attrs == nil {
		member := "key"
		if in.verb == verbPut {
			member = "item"
		}
		return nil, invalid("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", member)
	}
	if w.attrs, err = expr.CheckItem(in.attrs); err != nil {
		return nil, invalidExpr(err)
	}
	return w, nil
}

// newEnv checks the placeholders of a request against its expressions.
func newEnv(names map[string]string, values expr.Item, exprs []expr.Expression) (expr.Env, error) {
	env := expr.Env{Names: names}
	switch {
	case len(exprs) == 0 && names != nil:
		return env, invalid("ExpressionAttributeNames can only be specified when using expressions")
	case len(exprs) == 0 && values != nil:
		return env, invalid("ExpressionAttributeValues can only be specified when using expressions")
	case names != nil && len(names) == 0:
		return env, invalid("ExpressionAttributeNames must not be empty")
	case values != nil && len(values) == 0:
		return env, invalid("ExpressionAttributeValues must not be empty")
	}
	if values != nil {
		env.Values = make(expr.Item, len(values))
	}
	for name, v := range values {
		if len(name) < 2 || name[0] != ':' {
			return env, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: %q", name)
		}
		c, err := expr.Check(v)
		if err != nil {
			return env, invalid("ExpressionAttributeValues contains invalid value: %s for key %s", err, name)
		}
		env.Values[name] = c
	}
	if err := env.Check(exprs...); err != nil {
		return env, invalidExpr(cmp.Or(checkNames(names), err))
	}
	return env, nil
}

// checkNames finds keys that are no placeholders. No expression can use them,
// so that they need only be looked for when something is wrong.
func checkNames(names map[string]string) error {
	for name := range names {
		if len(name) < 2 || name[0] != '#' {
			return errors.New("ExpressionAttributeNames contains invalid key: Syntax error; key: " + strconv.Quote(name))
		}
	}
	return nil
}

// change is a write that has been found possible.
type change struct {
	table    *table
	key      rowKey
	old, new expr.Item // nil when there was or will be no item
	size     int       // of new
	check    bool      // nothing is to be written
}

// locate finds the table and the place of a write; the mutex is held.
func (s *Server) locate(w *write) (*table, rowKey, error) {
	t, err := s.active(w.table)
	if err != nil {
		return nil, rowKey{}, err
	}
	k, err := t.keyOf(w.attrs, w.verb != verbPut)
	if err != nil {
		return nil, rowKey{}, err
	}
	if w.update != nil {
		for _, name := range []string{t.partition.name, t.sort.name} {
			if name != "" && w.update.Changes(w.env, name) {
				return nil, rowKey{}, invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", name)
			}
		}
	}
	return t, k, nil
}

// evaluate tests the condition and computes the new item; the mutex is held.
func (w *write) evaluate(t *table, k rowKey) (change, error) {
	c := change{table: t, key: k, old: t.get(k)}
	if w.cond != nil && !w.cond.Match(w.env, c.old) {
		f := fail(codeConditionFailed, "The conditional request failed")
		if w.oldOnErr {
			f.item = c.old
		}
		return c, f
	}
	switch w.verb {
	case verbPut:
		c.new = w.attrs
	case verbUpdate:
		base := c.old
		if base == nil {
			base = w.attrs
		}
		c.new = base
		if w.update != nil {
			item, err := w.update.Apply(w.env, base)
			if err != nil {
				return c, invalidExpr(err)
			}
			c.new = item
		}
	case verbCheck:
		c.check = true
	}
	if c.new == nil {
		return c, nil
	}
	if c.size = expr.Size(c.new); c.size > maxItem {
		if w.verb == verbUpdate {
			return c, invalid("Item size to update has exceeded the maximum allowed size")
		}
		return c, invalid("Item size has exceeded the maximum allowed size")
	}
	return c, nil
}

// commit carries a change out and leaves its record; the mutex is held.
func (s *Server) commit(c change, byTTL bool) {
	if c.check || c.old == nil && c.new == nil {
		return
	}
	if c.new == nil {
		c.table.remove(c.key)
	} else {
		c.table.put(c.key, c.new, c.size)
	}
	st := c.table.stream
	if st == nil || st.disabled || c.old != nil && c.new != nil && expr.EqualItems(c.old, c.new) {
		return
	}
	item := c.new
	if item == nil {
		item = c.old
	}
	st.append(record{at: s.Now(), keys: c.table.keyItem(item), old: c.old, new: c.new, byTTL: byTTL})
}
