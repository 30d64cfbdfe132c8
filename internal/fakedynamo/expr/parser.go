package expr

import (
	"strconv"
	"strings"
)

// The service's limits on expressions.
const (
	maxExpressionSize = 4096
	maxNesting        = 100 // of parentheses and NOT, a bound of our own
	maxInOperands     = 100
)

// parser reads one expression by recursive descent. The first error wins.
type parser struct {
	kind   Kind
	source string
	tokens []token
	pos    int
	depth  int
	refs   references
}

// newParser prepares the tokens of an expression.
func newParser(kind Kind, source string) (*parser, error) {
	if strings.TrimSpace(source) == "" {
		return nil, kind.invalid("The expression can not be empty;")
	}
	if len(source) > maxExpressionSize {
		return nil, kind.invalid("Expression size has exceeded the maximum allowed size; expression size: %d", len(source))
	}
	p := &parser{kind: kind, source: source}
	tokens, ok := lex(source)
	p.tokens = tokens
	if !ok {
		p.pos = len(tokens) - 2
		return nil, p.syntaxError()
	}
	return p, nil
}

func (p *parser) peek() token { return p.tokens[p.pos] }

// take consumes and returns the next token; the end is never consumed.
func (p *parser) take() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
	}
	return t
}

// accept consumes the symbol if it comes next.
func (p *parser) accept(symbol string) bool {
	if p.peek().is(symbol) {
		p.pos++
		return true
	}
	return false
}

// acceptWord consumes the keyword if it comes next.
func (p *parser) acceptWord(word string) bool {
	if p.peek().isWord(word) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(symbol string) error {
	if !p.accept(symbol) {
		return p.syntaxError()
	}
	return nil
}

// expectEnd fails when anything is left over.
func (p *parser) expectEnd() error {
	if p.peek().kind != tokenEnd {
		return p.syntaxError()
	}
	return nil
}

// syntaxError points at the next token and its neighbours.
func (p *parser) syntaxError() error {
	t := p.peek()
	from, to := t.pos, t.end
	if p.pos > 0 {
		from = p.tokens[p.pos-1].pos
	}
	if p.pos+1 < len(p.tokens) {
		to = p.tokens[p.pos+1].end
	}
	return p.kind.invalid("Syntax error; token: %q, near: %q", t.text, p.source[from:to])
}

// enter bounds the nesting; the caller leaves with p.depth--.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxNesting {
		return p.kind.invalid("The expression contains too many operators; operator count: %d", p.depth)
	}
	return nil
}

// path reads a document path.
func (p *parser) path() (path, error) {
	first, err := p.pathName()
	if err != nil {
		return nil, err
	}
	out := path{first}
	for {
		switch {
		case p.accept("."):
			e, err := p.pathName()
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		case p.accept("["):
			t := p.peek()
			index, err := strconv.Atoi(t.text)
			if t.kind != tokenNumber || err != nil {
				return nil, p.syntaxError()
			}
			p.take()
			if err := p.expect("]"); err != nil {
				return nil, err
			}
			out = append(out, element{index: index})
		default:
			if len(out) > maxDepth {
				return nil, p.kind.invalid("The document path has too many nesting levels; nesting levels: %d", len(out))
			}
			return out, nil
		}
	}
}

// pathName reads a name or a #placeholder of a path.
func (p *parser) pathName() (element, error) {
	t := p.peek()
	switch {
	case t.kind == tokenName:
		p.refs.addName(t.text)
	case t.kind != tokenWord:
		return element{}, p.syntaxError()
	case IsReserved(t.text):
		return element{}, p.kind.invalid("Attribute name is a reserved keyword; reserved keyword: %s", t.text)
	}
	p.take()
	return element{name: t.text}, nil
}

// operand reads a path, a value, a function call or one of these in parentheses.
func (p *parser) operand() (*operand, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	t := p.peek()
	switch {
	case t.kind == tokenValue:
		p.take()
		p.refs.addValue(t.text)
		return &operand{value: t.text}, nil
	case t.is("("):
		p.take()
		o, err := p.operand()
		if err != nil {
			return nil, err
		}
		return o, p.expect(")")
	case t.kind == tokenWord && p.tokens[p.pos+1].is("("):
		p.take()
		args, err := p.arguments()
		if err != nil {
			return nil, err
		}
		o := &operand{op: t.text, args: args}
		return o, p.checkValueFunction(o)
	}
	path, err := p.path()
	if err != nil {
		return nil, err
	}
	return &operand{path: path}, nil
}

// arguments reads a parenthesised list of operands.
func (p *parser) arguments() ([]*operand, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var args []*operand
	for {
		o, err := p.operand()
		if err != nil {
			return nil, err
		}
		args = append(args, o)
		if !p.accept(",") {
			return args, p.expect(")")
		}
	}
}
