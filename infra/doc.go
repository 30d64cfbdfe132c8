// Package infra is the deployment of Lockstream with the AWS CDK. It is a module of its
// own, so that users of the lock client do not download the CDK.
//
// It takes the names of attributes from the package that the code which writes them uses,
// so that a table's TTL and keys cannot drift from what is written.
package infra

import "github.com/lockstream/lockstream/internal/lockattr"

// The attribute names that a table for locks is deployed with.
const (
	PartitionKey = lockattr.Key // type S
	TTLAttribute = lockattr.TTL // type N, epoch seconds
)
