package expr

import "slices"

var comparators = []string{"=", "<>", "<", "<=", ">", ">="}

// parseCondition reads a whole condition, filter or key condition.
func parseCondition(kind Kind, source string) (*Condition, error) {
	p, err := newParser(kind, source)
	if err != nil {
		return nil, err
	}
	root, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if err := p.expectEnd(); err != nil {
		return nil, err
	}
	return &Condition{kind: kind, root: root, refs: p.refs}, nil
}

func (p *parser) disjunction() (*condition, error) {
	return p.chain("OR", p.conjunction)
}

func (p *parser) conjunction() (*condition, error) {
	return p.chain("AND", p.negation)
}

// chain reads one or more conditions joined by a connective.
func (p *parser) chain(word string, next func() (*condition, error)) (*condition, error) {
	first, err := next()
	if err != nil {
		return nil, err
	}
	subs := []*condition{first}
	for p.acceptWord(word) {
		c, err := next()
		if err != nil {
			return nil, err
		}
		subs = append(subs, c)
	}
	if len(subs) == 1 {
		return first, nil
	}
	return &condition{op: word, subs: subs}, nil
}

func (p *parser) negation() (*condition, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if !p.acceptWord("NOT") {
		return p.primary()
	}
	c, err := p.negation()
	if err != nil {
		return nil, err
	}
	return &condition{op: "NOT", subs: []*condition{c}}, nil
}

// primary reads a condition in parentheses, a function or a comparison. An
// opening parenthesis can begin either a condition or an operand; the first
// reading that fits is taken.
func (p *parser) primary() (*condition, error) {
	t := p.peek()
	if t.is("(") {
		start, refs := p.pos, p.refs
		c, err := p.group()
		if err == nil && !p.atComparator() {
			return c, nil
		}
		if c, other := p.retryAsComparison(start, refs); other == nil {
			return c, nil
		}
		if err == nil {
			err = p.syntaxError()
		}
		return nil, err
	}
	if t.kind == tokenWord && p.tokens[p.pos+1].is("(") && functions[t.text].in == asCondition {
		p.take()
		args, err := p.arguments()
		if err != nil {
			return nil, err
		}
		if err := p.checkFunction(t.text, args, asCondition); err != nil {
			return nil, err
		}
		return &condition{op: t.text, args: args}, p.checkDistinct(t.text, args)
	}
	return p.comparison()
}

// retryAsComparison reads from start once more, and gives up without a trace.
func (p *parser) retryAsComparison(start int, refs references) (*condition, error) {
	end, seen := p.pos, p.refs
	p.pos, p.refs = start, references{names: slices.Clone(refs.names), values: slices.Clone(refs.values)}
	c, err := p.comparison()
	if err != nil {
		p.pos, p.refs = end, seen
	}
	return c, err
}

func (p *parser) group() (*condition, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.take()
	c, err := p.disjunction()
	if err != nil {
		return nil, err
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	if c.grouped {
		return nil, p.kind.invalid("The expression has redundant parentheses;")
	}
	c.grouped = true
	return c, nil
}

// atComparator tells whether a comparison goes on here.
func (p *parser) atComparator() bool {
	t := p.peek()
	return t.kind == tokenSymbol && slices.Contains(comparators, t.text) || t.isWord("BETWEEN") || t.isWord("IN")
}

func (p *parser) comparison() (*condition, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	if !p.atComparator() {
		if left.op != "" && left.path == nil && p.peek().kind == tokenEnd {
			return nil, p.kind.invalid("The function is not allowed to be used this way in an expression; function: %s", left.op)
		}
		return nil, p.syntaxError()
	}
	c := &condition{op: p.take().text, args: []*operand{left}}
	switch {
	case slices.Contains(comparators, c.op):
		right, err := p.operand()
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, right)
	case len(c.op) == len("IN"):
		c.op = "IN"
		rest, err := p.arguments()
		if err != nil {
			return nil, err
		}
		if len(rest) > maxInOperands {
			return nil, p.kind.invalid("The IN operator is provided with too many operands; number of operands: %d", len(rest))
		}
		c.args = append(c.args, rest...)
	default:
		c.op = "BETWEEN"
		if err := p.bounds(c); err != nil {
			return nil, err
		}
	}
	return c, p.checkDistinct(c.op, c.args)
}

// bounds reads the two bounds of BETWEEN.
func (p *parser) bounds(c *condition) error {
	low, err := p.operand()
	if err != nil {
		return err
	}
	if !p.acceptWord("AND") {
		return p.syntaxError()
	}
	high, err := p.operand()
	if err != nil {
		return err
	}
	c.args = append(c.args, low, high)
	return nil
}

// checkDistinct refuses to compare a path with itself.
func (p *parser) checkDistinct(op string, args []*operand) error {
	if args[0].path == nil {
		return nil
	}
	for _, o := range args[1:] {
		if o.path != nil && slices.Equal(o.path, args[0].path) {
			return p.kind.invalid("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", op, args[0].path)
		}
	}
	return nil
}
