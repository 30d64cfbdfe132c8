package expr

// signature says what the language demands of a function, whatever the values.
type signature struct {
	args int
	// pathFirst demands a document path as the first argument.
	pathFirst bool
	// in is what the function may be used for.
	in usage
}

type usage int

const (
	asCondition   usage = iota // a condition of its own
	asOperand                  // an operand in a condition
	asUpdateValue              // an operand in an update
)

var functions = map[string]signature{
	"attribute_exists":     {args: 1, pathFirst: true, in: asCondition},
	"attribute_not_exists": {args: 1, pathFirst: true, in: asCondition},
	"attribute_type":       {args: 2, pathFirst: true, in: asCondition},
	"begins_with":          {args: 2, in: asCondition},
	"contains":             {args: 2, in: asCondition},
	"size":                 {args: 1, in: asOperand},
	"if_not_exists":        {args: 2, pathFirst: true, in: asUpdateValue},
	"list_append":          {args: 2, in: asUpdateValue},
}

// checkFunction checks name, place, number and form of the arguments.
func (p *parser) checkFunction(name string, args []*operand, want usage) error {
	sig, ok := functions[name]
	switch {
	case !ok:
		return p.kind.invalid("Invalid function name; function: %s", name)
	case p.kind == KindUpdate && sig.in != asUpdateValue:
		return p.kind.invalid("The function is not allowed in an update expression; function: %s", name)
	case p.kind != KindUpdate && sig.in == asUpdateValue:
		return p.kind.invalid("The function is not allowed in a condition expression; function: %s", name)
	case sig.in != want:
		return p.kind.invalid("The function is not allowed to be used this way in an expression; function: %s", name)
	case len(args) != sig.args:
		return p.kind.invalid("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(args))
	case sig.pathFirst && args[0].path == nil:
		return p.kind.invalid("Operator or function requires a document path; operator or function: %s", name)
	}
	return nil
}

// checkValueFunction checks a call that stands where a value is wanted.
func (p *parser) checkValueFunction(o *operand) error {
	want := asOperand
	if p.kind == KindUpdate {
		want = asUpdateValue
	}
	return p.checkFunction(o.op, o.args, want)
}
