package expr

import "strings"

// tokenKind tells the tokens of the language apart.
type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenName  // #name
	tokenValue // :value
	tokenNumber
	tokenSymbol
)

// token is a piece of an expression; text[pos:end] is its source.
type token struct {
	kind     tokenKind
	text     string
	pos, end int
}

// is tells whether the token is the given symbol.
func (t token) is(symbol string) bool { return t.kind == tokenSymbol && t.text == symbol }

// isWord tells whether the token is the given keyword, in any case.
func (t token) isWord(word string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, word)
}

// lex splits an expression into tokens; the last is always tokenEnd. ok is
// false when a character belongs to no token: that character is then the last
// token before the end.
func lex(s string) (tokens []token, ok bool) {
	for pos := 0; ; {
		for pos < len(s) && strings.IndexByte(" \t\r\n", s[pos]) >= 0 {
			pos++
		}
		if pos == len(s) {
			return append(tokens, token{kind: tokenEnd, text: "<EOF>", pos: pos, end: pos}), true
		}
		t := next(s, pos)
		if t.end == pos {
			t.end, t.text = pos+1, s[pos:pos+1]
			return append(tokens, t, token{kind: tokenEnd, text: "<EOF>", pos: len(s), end: len(s)}), false
		}
		t.text = s[t.pos:t.end]
		tokens = append(tokens, t)
		pos = t.end
	}
}

// next finds the kind and the extent of the token at pos.
func next(s string, pos int) token {
	t := token{pos: pos, end: pos}
	switch c := s[pos]; {
	case c == '#' || c == ':':
		t.kind = tokenName
		if c == ':' {
			t.kind = tokenValue
		}
		if t.end = span(s, pos+1, isWordByte); t.end == pos+1 {
			t.end = pos
		}
	case isDigit(c):
		t.kind, t.end = tokenNumber, span(s, pos, isDigit)
	case isWordByte(c):
		t.kind, t.end = tokenWord, span(s, pos, isWordByte)
	case strings.HasPrefix(s[pos:], "<>"), strings.HasPrefix(s[pos:], "<="), strings.HasPrefix(s[pos:], ">="):
		t.kind, t.end = tokenSymbol, pos+2
	case strings.IndexByte("()[].,=<>+-", c) >= 0:
		t.kind, t.end = tokenSymbol, pos+1
	}
	return t
}

func span(s string, pos int, in func(byte) bool) int {
	for pos < len(s) && in(s[pos]) {
		pos++
	}
	return pos
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordByte(c byte) bool {
	return isDigit(c) || c == '_' || (c|0x20 >= 'a' && c|0x20 <= 'z')
}
