package expr

import "strings"

// parseUpdate reads a whole update expression.
func parseUpdate(source string) (*Update, error) {
	p, err := newParser(KindUpdate, source)
	if err != nil {
		return nil, err
	}
	u := &Update{}
	seen := map[string]bool{}
	for p.peek().kind != tokenEnd {
		section, ok := p.section()
		if !ok {
			return nil, p.syntaxError()
		}
		if seen[section] {
			return nil, KindUpdate.invalid("The %q section can only be used once in an update expression;", section)
		}
		seen[section] = true
		for more := true; more; more = p.accept(",") {
			a, err := p.action(section)
			if err != nil {
				return nil, err
			}
			u.actions = append(u.actions, a)
		}
	}
	u.refs = p.refs
	u.prepare()
	return u, nil
}

// section reads the keyword that opens a section.
func (p *parser) section() (string, bool) {
	for _, s := range []string{"SET", "REMOVE", "ADD", "DELETE"} {
		if p.acceptWord(s) {
			return s, true
		}
	}
	return "", false
}

func (p *parser) action(section string) (action, error) {
	target, err := p.path()
	if err != nil {
		return action{}, err
	}
	a := action{section: section, path: target}
	switch section {
	case "SET":
		if err := p.expect("="); err != nil {
			return action{}, err
		}
		a.operand, err = p.sum()
		if err != nil {
			return action{}, err
		}
	case "ADD", "DELETE":
		t := p.peek()
		if t.kind != tokenValue {
			return action{}, p.syntaxError()
		}
		a.operand, err = p.operand()
		if err != nil {
			return action{}, err
		}
	}
	return a, nil
}

// sum reads a value, or one addition or subtraction of two.
func (p *parser) sum() (*operand, error) {
	if p.peek().is("(") {
		if o, ok := p.groupedSum(); ok {
			return o, nil
		}
	}
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	op := p.peek()
	if !op.is("+") && !op.is("-") {
		return left, nil
	}
	p.take()
	right, err := p.operand()
	if err != nil {
		return nil, err
	}
	return &operand{op: op.text, args: []*operand{left, right}}, nil
}

// groupedSum reads a sum that is in parentheses as a whole.
func (p *parser) groupedSum() (*operand, bool) {
	if p.depth >= maxNesting {
		return nil, false
	}
	p.depth++
	defer func() { p.depth-- }()
	start := p.pos
	p.take()
	o, err := p.sum()
	if err == nil && p.accept(")") && !p.peek().is("+") && !p.peek().is("-") {
		return o, true
	}
	p.pos = start
	return nil, false
}

// parseProjection reads a whole projection expression.
func parseProjection(source string) (*Projection, error) {
	p, err := newParser(KindProjection, source)
	if err != nil {
		return nil, err
	}
	pr := &Projection{}
	for more := true; more; more = p.accept(",") {
		target, err := p.path()
		if err != nil {
			return nil, err
		}
		pr.paths = append(pr.paths, target)
	}
	pr.refs = p.refs
	return pr, p.expectEnd()
}

// isPlaceholder tells a #name from a literal attribute name.
func isPlaceholder(name string) bool { return strings.HasPrefix(name, "#") }
