package lockitem

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
)

// The service's limits for key values in bytes.
const (
	maxPartitionKey = 2048
	maxSortKey      = 1024
)

// ErrInvalidName is returned for a lock name that cannot be a key.
var ErrInvalidName = errors.New("invalid lock name")

// Layout says where in a table a lock's item lives.
type Layout struct {
	Partition string // name of the partition key attribute
	Sort      string // name of the sort key attribute, "" for a table without one
	SortValue string // the sort key's constant value
	Prefix    string // put before every lock name
}

// Validate reports everything that is wrong with the layout, joined.
func (l Layout) Validate() error {
	var errs []error
	check := func(role, name string) {
		switch {
		case len(name) > 255:
			errs = append(errs, fmt.Errorf("%s key attribute name is longer than 255 bytes", role))
		case slices.Contains(lockattr.All(), name):
			errs = append(errs, fmt.Errorf("%s key attribute %q is the name of one of a lock's own attributes", role, name))
		}
	}
	if l.Partition == "" {
		errs = append(errs, errors.New("partition key attribute name is empty"))
	}
	check("partition", l.Partition)
	if l.Sort != "" {
		check("sort", l.Sort)
		if l.Sort == l.Partition {
			errs = append(errs, fmt.Errorf("partition and sort key are both %q", l.Sort))
		}
		if l.SortValue == "" {
			errs = append(errs, errors.New("sort key value is empty"))
		}
		if len(l.SortValue) > maxSortKey {
			errs = append(errs, fmt.Errorf("sort key value is longer than %d bytes", maxSortKey))
		}
	} else if l.SortValue != "" {
		errs = append(errs, errors.New("sort key value without a sort key attribute"))
	}
	if !utf8.ValidString(l.Prefix) || !utf8.ValidString(l.SortValue) {
		errs = append(errs, errors.New("key prefix or sort key value is not UTF-8"))
	}
	if len(l.Prefix) >= maxPartitionKey {
		errs = append(errs, fmt.Errorf("key prefix leaves no room for a name below %d bytes", maxPartitionKey))
	}
	return errors.Join(errs...)
}

// CheckName returns an error that is ErrInvalidName when name cannot be a lock's name
// in this layout: empty, not UTF-8, or with the prefix longer than a key may be.
func (l Layout) CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: empty", ErrInvalidName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: not UTF-8", ErrInvalidName)
	case len(l.Prefix)+len(name) > maxPartitionKey:
		return fmt.Errorf("%w: %d bytes with its prefix, a key may have %d", ErrInvalidName, len(l.Prefix)+len(name), maxPartitionKey)
	}
	return nil
}

// CheckAttributes returns an error for attributes that a caller may not write beside a
// lock: its keys, the lock's own ones, and any without a name or value.
func (l Layout) CheckAttributes(attrs map[string]types.AttributeValue) error {
	for name, value := range attrs {
		switch {
		case name == "":
			return errors.New("attribute without a name")
		case value == nil:
			return fmt.Errorf("attribute %q has no value", name)
		case name == l.Partition || name == l.Sort:
			return fmt.Errorf("attribute %q is a key of the table", name)
		case slices.Contains(lockattr.All(), name):
			return fmt.Errorf("attribute %q is one of a lock's own", name)
		}
	}
	return nil
}

// Key returns the key of the item for name, which must have passed CheckName.
func (l Layout) Key(name string) map[string]types.AttributeValue {
	key := map[string]types.AttributeValue{l.Partition: str(l.Prefix + name)}
	if l.Sort != "" {
		key[l.Sort] = str(l.SortValue)
	}
	return key
}

// Name returns the lock name that key stands for, and false when an item under that
// key cannot be one of this layout's locks.
func (l Layout) Name(key map[string]types.AttributeValue) (string, bool) {
	p, ok := key[l.Partition].(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	if l.Sort != "" {
		s, ok := key[l.Sort].(*types.AttributeValueMemberS)
		if !ok || s.Value != l.SortValue {
			return "", false
		}
	}
	name, ok := strings.CutPrefix(p.Value, l.Prefix)
	return name, ok && name != ""
}
