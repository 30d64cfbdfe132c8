package lockitem

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
)

// The values of lockOp. They serve filters on the server's side only: a foreign client
// leaves the attribute as it was, so no reader may tell a change by it alone.
const (
	OpAcquire  = "acquire"
	OpRenew    = "renew"
	OpHandOver = "handover"
	OpRelease  = "release"
	OpTakeover = "takeover"
	OpReap     = "reap"
	OpMark     = "mark"
	OpPause    = "pause"
	OpResume   = "resume"
	OpFloor    = "floor"
)

// Expr is a condition and an effect with their placeholders.
type Expr struct {
	Condition string
	Update    string
	Names     map[string]string
	Values    map[string]types.AttributeValue
}

// UpdateInput returns the request for e on one item. It asks for the whole item after a
// success and for the present one after a failed condition.
func (e Expr) UpdateInput(table string, key map[string]types.AttributeValue) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                           aws.String(table),
		Key:                                 key,
		ConditionExpression:                 aws.String(e.Condition),
		UpdateExpression:                    aws.String(e.Update),
		ExpressionAttributeNames:            e.Names,
		ExpressionAttributeValues:           e.Values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// DeleteInput returns the request that deletes the item where e's condition holds.
func (e Expr) DeleteInput(table string, key map[string]types.AttributeValue) *dynamodb.DeleteItemInput {
	return &dynamodb.DeleteItemInput{
		TableName:                           aws.String(table),
		Key:                                 key,
		ConditionExpression:                 aws.String(e.Condition),
		ExpressionAttributeNames:            e.Names,
		ExpressionAttributeValues:           e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// CheckItem returns e's condition as an action for a transaction.
func (e Expr) CheckItem(table string, key map[string]types.AttributeValue) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                           aws.String(table),
		Key:                                 key,
		ConditionExpression:                 aws.String(e.Condition),
		ExpressionAttributeNames:            e.Names,
		ExpressionAttributeValues:           e.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// LeaseFormat is the form in which leaseDuration is written.
type LeaseFormat uint8

const (
	// Milliseconds writes "20000", the form of the AWS client for Java.
	Milliseconds LeaseFormat = iota
	// GoDuration writes "20s", the form of the client's Go port.
	GoDuration
)

func (f LeaseFormat) format(d time.Duration) string {
	if f == GoDuration {
		return d.String()
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// builder collects a condition and an effect; a placeholder is the attribute's own name
// behind # or :, so an expression reads like the table in the documentation.
type builder struct {
	cond   []string
	set    []string
	remove []string
	names  map[string]string
	values map[string]types.AttributeValue
}

func newBuilder() *builder {
	return &builder{names: map[string]string{}, values: map[string]types.AttributeValue{}}
}

func (b *builder) name(attr string) string {
	b.names["#"+attr] = attr
	return "#" + attr
}

func (b *builder) value(placeholder string, v types.AttributeValue) string {
	b.values[":"+placeholder] = v
	return ":" + placeholder
}

func (b *builder) where(cond string)       { b.cond = append(b.cond, cond) }
func (b *builder) exists(a string) string  { return "attribute_exists(" + b.name(a) + ")" }
func (b *builder) missing(a string) string { return "attribute_not_exists(" + b.name(a) + ")" }

func (b *builder) equals(attr, placeholder string, v types.AttributeValue) string {
	return b.name(attr) + " = " + b.value(placeholder, v)
}

func (b *builder) isReleased() string {
	return b.equals(lockattr.IsReleased, "released", str("1"))
}

func (b *builder) put(attr string, v types.AttributeValue) {
	b.set = append(b.set, b.name(attr)+" = "+b.value(attr, v))
}

// putOthers sets attributes that are not the lock's. Their names may have characters that
// a placeholder must not have, so these are numbered.
func (b *builder) putOthers(attrs map[string]types.AttributeValue) {
	for i, attr := range slices.Sorted(maps.Keys(attrs)) {
		placeholder := "other" + strconv.Itoa(i)
		b.names["#"+placeholder] = attr
		b.set = append(b.set, "#"+placeholder+" = "+b.value(placeholder, attrs[attr]))
	}
}

func (b *builder) drop(attr string) { b.remove = append(b.remove, b.name(attr)) }

// putTime writes t in the unit of its attribute, or removes the attribute for a zero t:
// a value left over from an earlier write would be believed.
func (b *builder) putTime(attr string, t time.Time) {
	switch {
	case t.IsZero():
		b.drop(attr)
	case attr == lockattr.TTL:
		b.put(attr, num(t.Unix()))
	default:
		b.put(attr, num(t.UnixMilli()))
	}
}

func (b *builder) expr() Expr {
	e := Expr{Condition: strings.Join(b.cond, " AND "), Names: b.names, Values: b.values}
	if len(b.set) > 0 {
		e.Update = "SET " + strings.Join(b.set, ", ")
	}
	if len(b.remove) > 0 {
		e.Update += " REMOVE " + strings.Join(b.remove, ", ")
	}
	return e
}
