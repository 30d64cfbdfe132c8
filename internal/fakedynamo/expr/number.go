package expr

import (
	"math/big"
	"strings"
)

// The limits of the service's number type.
const (
	maxDigits   = 38
	maxExponent = 125
	minExponent = -130
)

// number is coef·10^exp. A parsed number has no trailing zeros in coef.
type number struct {
	coef *big.Int
	exp  int
}

// smallInt reads a canonical integer of at most 18 digits, the common case,
// without allocating.
func smallInt(s string) (int64, bool) {
	digits := s
	if strings.HasPrefix(s, "-") {
		digits = s[1:]
	}
	if digits == "" || len(digits) > 18 || (digits[0] == '0' && len(s) > 1) {
		return 0, false
	}
	var v int64
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if len(digits) != len(s) {
		v = -v
	}
	return v, true
}

// normalizeNumber returns the canonical decimal text of s: no exponent, no
// superfluous zeros.
func normalizeNumber(s string) (string, error) {
	if _, ok := smallInt(s); ok {
		return s, nil
	}
	n, err := parseNumber(s)
	if err != nil {
		return "", err
	}
	return n.String(), nil
}

// parseNumber reads a decimal number and checks the service's limits.
func parseNumber(s string) (number, error) {
	digits, exp, neg, ok := scanNumber(s)
	if !ok {
		return number{}, errorf("The parameter cannot be converted to a numeric value: %s", s)
	}
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return number{coef: new(big.Int)}, nil
	}
	exp += len(digits) - len(trimmed)
	coef, _ := new(big.Int).SetString(trimmed, 10)
	if neg {
		coef.Neg(coef)
	}
	n := number{coef: coef, exp: exp}
	return n, n.check(len(trimmed))
}

// check verifies the limits for a number of the given count of digits.
func (n number) check(digits int) error {
	switch top := digits - 1 + n.exp; {
	case digits > maxDigits:
		return errorf("Attempting to store more than 38 significant digits in a Number")
	case top > maxExponent:
		return errorf("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case top < minExponent:
		return errorf("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}
	return nil
}

// scanNumber splits the text of a number into its digits without leading
// zeros, its exponent and its sign.
func scanNumber(s string) (digits string, exp int, neg, ok bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	mantissa := s
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		if exp, ok = scanExponent(s[i+1:]); !ok {
			return "", 0, false, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", 0, false, false
	}
	return strings.TrimLeft(digits, "0"), exp - len(fraction), neg, true
}

// scanExponent reads an exponent. Absurdly large ones are cut to a value that
// is out of range in any case.
func scanExponent(s string) (int, bool) {
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	v := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		v = min(v*10+int(s[i]-'0'), 1_000_000)
	}
	if neg {
		v = -v
	}
	return v, true
}

// String gives the number in plain decimal notation.
func (n number) String() string {
	sign, digits := "", n.coef.String()
	if n.coef.Sign() < 0 {
		sign, digits = "-", digits[1:]
	}
	switch {
	case n.coef.Sign() == 0:
		return "0"
	case n.exp >= 0:
		return sign + digits + strings.Repeat("0", n.exp)
	case len(digits) > -n.exp:
		point := len(digits) + n.exp
		return sign + digits[:point] + "." + digits[point:]
	default:
		return sign + "0." + strings.Repeat("0", -n.exp-len(digits)) + digits
	}
}

// align brings two numbers to a common exponent.
func align(a, b number) (x, y *big.Int, exp int) {
	exp = min(a.exp, b.exp)
	scale := func(n number) *big.Int {
		p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.exp-exp)), nil)
		return p.Mul(p, n.coef)
	}
	return scale(a), scale(b), exp
}

// compareNumbers orders two canonical numbers.
func compareNumbers(a, b string) int {
	if x, ok := smallInt(a); ok {
		if y, ok := smallInt(b); ok {
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	m, errA := parseNumber(a)
	n, errB := parseNumber(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}
	x, y, _ := align(m, n)
	return x.Cmp(y)
}

// addNumbers gives a + b, or a - b.
func addNumbers(a, b string, subtract bool) (string, error) {
	m, err := parseNumber(a)
	if err != nil {
		return "", err
	}
	n, err := parseNumber(b)
	if err != nil {
		return "", err
	}
	x, y, exp := align(m, n)
	if subtract {
		x.Sub(x, y)
	} else {
		x.Add(x, y)
	}
	// Printed and read again, the sum is normalised and checked.
	return normalizeNumber(number{coef: x, exp: exp}.String())
}

// SortableNumber encodes a canonical number so that the order of the encoded
// strings is the order of the numbers.
func SortableNumber(s string) (string, error) {
	n, err := parseNumber(s)
	if err != nil {
		return "", err
	}
	if n.coef.Sign() == 0 {
		return "1", nil
	}
	digits := new(big.Int).Abs(n.coef).String()
	biased := len(digits) - 1 + n.exp - minExponent
	if n.coef.Sign() > 0 {
		return "2" + string([]byte{byte('0' + biased/100), byte('0' + biased/10%10), byte('0' + biased%10)}) + digits, nil
	}
	biased = 999 - biased
	out := []byte{'0', byte('0' + biased/100), byte('0' + biased/10%10), byte('0' + biased%10)}
	for i := range len(digits) {
		out = append(out, '9'-digits[i]+'0')
	}
	return string(append(out, '~')), nil
}
