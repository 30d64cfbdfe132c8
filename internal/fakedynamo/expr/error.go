package expr

import "fmt"

// Error says why an expression or a value is invalid. Its text is that of the
// service's ValidationException.
type Error struct {
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func errorf(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// Kind names the request member that an expression came from.
type Kind string

// The kinds of expressions.
const (
	KindCondition    Kind = "ConditionExpression"
	KindFilter       Kind = "FilterExpression"
	KindKeyCondition Kind = "KeyConditionExpression"
	KindUpdate       Kind = "UpdateExpression"
	KindProjection   Kind = "ProjectionExpression"
)

// invalid is an error that names the kind of the expression it is about.
func (k Kind) invalid(format string, args ...any) *Error {
	return &Error{Message: "Invalid " + string(k) + ": " + fmt.Sprintf(format, args...)}
}
