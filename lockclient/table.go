package lockclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lockstream/lockstream/internal/lockattr"
)

// EnsureOptions configure EnsureTable.
type EnsureOptions struct {
	// Repair enables a missing stream and TTL on a table that exists already.
	Repair bool
	// NoStream leaves the stream out: for tables whose contenders all poll.
	NoStream bool
}

// TableReport says what EnsureTable found and did.
type TableReport struct {
	Created   bool     // the table was made by this call
	Repaired  []string // what this call enabled on an existing table: "stream", "ttl"
	Missing   []string // what the table still lacks: "stream", "stream view NEW_AND_OLD_IMAGES", "ttl"
	StreamARN string   // "" without a stream
}

// tablePoll is the pause between two looks at a table that is changing.
const tablePoll = 500 * time.Millisecond

// EnsureTable makes the table if it does not exist: on demand, with the client's keys, a
// stream with both images and TTL, and waits until all of it is usable. It describes
// first, so it needs no permission to create a table that is there. An existing table is
// checked and not changed unless Repair says so; what it lacks is in the report.
//
// It is idempotent and may be called by many processes at once. The error is ErrSchema
// for a table with other keys (the text has expected and found), else the cause; ctx
// bounds it.
func (c *Client) EnsureTable(ctx context.Context, optFns ...func(*EnsureOptions)) (TableReport, error) {
	var o EnsureOptions
	for _, fn := range optFns {
		fn(&o)
	}
	if err := c.begin(); err != nil {
		return TableReport{}, c.wrap(ensureTable, "", err)
	}
	defer c.work.Done()
	ctx, done := c.untilClosed(ctx)
	defer done()
	report, err := c.ensureTable(ctx, o)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(withContextError(ctx, context.Cause(ctx)), err)
	}
	return report, c.wrap(ensureTable, "", err)
}

func (c *Client) ensureTable(ctx context.Context, o EnsureOptions) (TableReport, error) {
	var report TableReport
	desc, err := c.describe(ctx)
	fresh := errors.Is(err, ErrNoTable) || err == nil && desc.TableStatus == types.TableStatusCreating
	if errors.Is(err, ErrNoTable) {
		if report.Created, err = c.createTable(ctx, o); err == nil {
			desc, err = c.describe(ctx)
			if errors.Is(err, ErrNoTable) {
				err, desc = nil, &types.TableDescription{}
			}
		}
	}
	for err == nil && desc.TableStatus != types.TableStatusActive {
		if !sleep(ctx, tablePoll) {
			return report, context.Cause(ctx)
		}
		desc, err = c.describe(ctx)
		if fresh && errors.Is(err, ErrNoTable) { // the new table is not visible everywhere yet
			err, desc = nil, &types.TableDescription{}
		}
	}
	if err != nil {
		return report, err
	}
	if err := c.checkKeys(desc); err != nil {
		return report, err
	}
	if err := c.ensureStream(ctx, o, desc, &report); err != nil {
		return report, err
	}
	if fresh && !report.Created {
		c.awaitTTL(ctx) // another process is making the table, and has this step before it
	}
	return report, c.ensureTTL(ctx, o, &report)
}

// awaitTTL gives the process that makes the table a few seconds to enable its TTL.
func (c *Client) awaitTTL(ctx context.Context) {
	for range 10 {
		out, err := c.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &c.table})
		if err != nil || ttlOn(out.TimeToLiveDescription) || !sleep(ctx, tablePoll) {
			return
		}
	}
}

func ttlOn(d *types.TimeToLiveDescription) bool {
	return d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling)
}

func (c *Client) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := c.db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.table})
	if err != nil {
		return nil, explain(err)
	}
	if out.Table == nil {
		return nil, ErrNoTable
	}
	return out.Table, nil
}

// createTable reports false when another process was faster.
func (c *Client) createTable(ctx context.Context, o EnsureOptions) (bool, error) {
	in := &dynamodb.CreateTableInput{
		TableName:            &c.table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &c.layout.Partition, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &c.layout.Partition, KeyType: types.KeyTypeHash}},
	}
	if c.layout.Sort != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &c.layout.Sort, AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &c.layout.Sort, KeyType: types.KeyTypeRange})
	}
	if !o.NoStream {
		in.StreamSpecification = streamSpec()
	}
	_, err := c.db.CreateTable(ctx, in)
	var inUse *types.ResourceInUseException
	if errors.As(err, &inUse) {
		return false, nil
	}
	return err == nil, explain(err)
}

func streamSpec() *types.StreamSpecification {
	return &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
}

func (c *Client) ensureStream(ctx context.Context, o EnsureOptions, desc *types.TableDescription, report *TableReport) error {
	for repaired := false; ; {
		spec := desc.StreamSpecification
		enabled := spec != nil && aws.ToBool(spec.StreamEnabled)
		switch {
		case enabled && spec.StreamViewType != types.StreamViewTypeNewAndOldImages:
			report.Missing = append(report.Missing, "stream view NEW_AND_OLD_IMAGES")
			report.StreamARN = aws.ToString(desc.LatestStreamArn)
			return nil // a view cannot be changed, and others may read the stream
		case enabled && desc.TableStatus == types.TableStatusActive && aws.ToString(desc.LatestStreamArn) != "":
			report.StreamARN = aws.ToString(desc.LatestStreamArn)
			return nil
		case !enabled && o.NoStream:
			return nil
		case !enabled && !o.Repair && !report.Created:
			report.Missing = append(report.Missing, "stream")
			return nil
		case !enabled && !repaired && desc.TableStatus == types.TableStatusActive:
			_, err := c.db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &c.table, StreamSpecification: streamSpec()})
			switch {
			case err == nil:
				repaired = true
				report.Repaired = append(report.Repaired, "stream")
			case !isBusy(err):
				return explain(err)
			case !sleep(ctx, tablePoll):
				return context.Cause(ctx)
			}
		default:
			if !sleep(ctx, tablePoll) {
				return context.Cause(ctx)
			}
		}
		var err error
		if desc, err = c.describe(ctx); err != nil {
			return err
		}
	}
}

// isBusy reports that another process is changing the same thing.
func isBusy(err error) bool {
	var inUse *types.ResourceInUseException
	return errors.As(err, &inUse)
}

func (c *Client) ensureTTL(ctx context.Context, o EnsureOptions, report *TableReport) error {
	if c.opt.SharedTable {
		return nil // never written there, so not asked for
	}
	for tries := 0; ; tries++ {
		out, err := c.db.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &c.table})
		if err != nil {
			return explain(err)
		}
		d := out.TimeToLiveDescription
		switch {
		case ttlOn(d) && aws.ToString(d.AttributeName) != lockattr.TTL:
			report.Missing = append(report.Missing, fmt.Sprintf("ttl on %q (it is on %q)", lockattr.TTL, aws.ToString(d.AttributeName)))
			return nil
		case ttlOn(d): // ENABLING may last an hour; nothing waits for TTL
			return nil
		case !o.Repair && !report.Created:
			report.Missing = append(report.Missing, "ttl")
			return nil
		}
		_, err = c.db.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               &c.table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(lockattr.TTL), Enabled: aws.Bool(true)},
		})
		switch {
		case err == nil:
			if !report.Created {
				report.Repaired = append(report.Repaired, "ttl")
			}
			return nil
		case !isBusy(err) && !isTTLRace(err) || tries > 20:
			return explain(err)
		case !sleep(ctx, tablePoll): // another process was faster: look again
			return context.Cause(ctx)
		}
	}
}

// isTTLRace recognises the refusal of a second request to enable what is being enabled.
func isTTLRace(err error) bool {
	var api interface{ ErrorCode() string }
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException"
}
