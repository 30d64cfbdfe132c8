// Package expr parses and evaluates the expression language of DynamoDB:
// condition, filter, key condition, update and projection expressions.
//
// An expression is parsed once by a [Cache] and is then independent of any
// request. A request brings an [Env], the #names and :values of that request;
// [Env.Check] reports what the service would reject before it looks at an
// item (undefined or unused placeholders, operands of a wrong type, paths that
// overlap). After a successful check, evaluation depends on the item alone.
//
// Values are those of the SDK. A value that comes from outside must pass
// through [Check], which copies it, validates it and brings numbers into their
// canonical form; all functions here rely on that form and never change a
// value in place, so stored items can be shared without copying.
//
// Every failure is an [*Error], whose text is worded after the service's
// ValidationException. Parsed expressions and caches are safe for concurrent
// use.
package expr
