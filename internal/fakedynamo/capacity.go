package fakedynamo

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/fakedynamo/expr"
)

// consumed reports capacity when the request asks for it.
func consumed(want types.ReturnConsumedCapacity, table string, units func() float64) *types.ConsumedCapacity {
	if want != types.ReturnConsumedCapacityTotal && want != types.ReturnConsumedCapacityIndexes {
		return nil
	}
	n := units()
	c := &types.ConsumedCapacity{TableName: aws.String(table), CapacityUnits: aws.Float64(n)}
	if want == types.ReturnConsumedCapacityIndexes {
		c.Table = &types.Capacity{CapacityUnits: aws.Float64(n)}
	}
	return c
}

// units is what a change of one item costs.
func (c change) units() float64 { return writeUnits(max(c.size, expr.Size(c.old))) }

// writeUnits: one for each started kilobyte, at least one.
func writeUnits(size int) float64 { return float64(max(1, (size+1023)/1024)) }

// readUnits: one for each started 4 KB, at least one, half without consistency.
func readUnits(size int, consistent *bool) float64 {
	units := float64(max(1, (size+4095)/4096))
	if !aws.ToBool(consistent) {
		units /= 2
	}
	return units
}
