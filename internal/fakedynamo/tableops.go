package fakedynamo

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const account = "000000000000"

func (s *Server) delay() time.Duration { return time.Duration(s.tableDelay.Load()) }

// reported is the server's time as descriptions give it.
func (s *Server) reported() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

func (s *Server) createTable(in *dynamodb.CreateTableInput) (*dynamodb.CreateTableOutput, error) {
	name, err := tableName(in.TableName)
	if err != nil {
		return nil, err
	}
	t := &table{name: name, rows: map[string]*partition{}}
	if err := t.setKeys(in.KeySchema, in.AttributeDefinitions); err != nil {
		return nil, err
	}
	if len(in.GlobalSecondaryIndexes)+len(in.LocalSecondaryIndexes) > 0 {
		return nil, invalid("Secondary indexes are not supported here")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lookup(name) != nil {
		return nil, fail(codeInUse, "Table already exists: %s", name)
	}
	t.created, t.readyAt = s.reported(), time.Now().Add(s.delay())
	t.arn = fmt.Sprintf("arn:aws:dynamodb:%s:%s:table/%s", s.region, account, name)
	t.id = fmt.Sprintf("00000000-0000-4000-8000-%012x", s.arrivals.Load())
	if err := s.changeStream(t, in.StreamSpecification, true); err != nil {
		return nil, err
	}
	s.tables[name] = t
	d := s.description(t)
	d.TableStatus = types.TableStatusCreating
	return &dynamodb.CreateTableOutput{TableDescription: d}, nil
}

// setKeys takes the key schema over and checks it.
func (t *table) setKeys(schema []types.KeySchemaElement, defs []types.AttributeDefinition) error {
	kinds := map[string]types.ScalarAttributeType{}
	for _, d := range defs {
		if !slices.Contains(d.AttributeType.Values(), d.AttributeType) {
			return invalid("1 validation error detected: Value '%s' at 'attributeDefinitions' failed to satisfy constraint: Member must satisfy enum value set: [B, N, S]", d.AttributeType)
		}
		kinds[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	if len(schema) < 1 || len(schema) > 2 {
		return invalid("1 validation error detected: Value at 'keySchema' failed to satisfy constraint: Member must have length less than or equal to 2 and greater than or equal to 1")
	}
	for i, e := range schema {
		name := aws.ToString(e.AttributeName)
		kind, ok := kinds[name]
		switch {
		case !ok || name == "":
			return invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s]", name)
		case i == 0 && e.KeyType == types.KeyTypeHash:
			t.partition = keyAttr{name, kind}
		case i == 1 && e.KeyType == types.KeyTypeRange && name != t.partition.name:
			t.sort = keyAttr{name, kind}
		default:
			return invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type or the second is not a RANGE key type of another attribute")
		}
	}
	if len(kinds) != len(schema) {
		return invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return nil
}

// changeStream enables or disables the stream of a table; the mutex is held.
func (s *Server) changeStream(t *table, spec *types.StreamSpecification, creating bool) error {
	if spec == nil {
		return nil
	}
	enabled := t.stream != nil && !t.stream.disabled
	if !aws.ToBool(spec.StreamEnabled) {
		switch {
		case spec.StreamViewType != "":
			return invalid("One or more parameter values were invalid: StreamViewType must not be given when StreamEnabled is false")
		case !creating && !enabled:
			return invalid("Table is already not streaming: TableName: %s", t.name)
		case enabled:
			t.stream.disable()
		}
		return nil
	}
	if enabled {
		return invalid("Table already has an enabled stream: TableName: %s", t.name)
	}
	if !slices.Contains(spec.StreamViewType.Values(), spec.StreamViewType) {
		return invalid("One or more parameter values were invalid: StreamViewType is required when StreamEnabled is true")
	}
	now := s.reported()
	s.streamNo++
	// Labels have milliseconds; the number keeps streams of one instant apart.
	label := now.Add(time.Duration(s.streamNo) * time.Millisecond).Format("2006-01-02T15:04:05.000")
	st := newStream(t.arn+"/stream/"+label, label, t, spec.StreamViewType, now, time.Now().Add(s.delay()))
	st.delay = s.rules.Delay
	t.stream = st
	s.streams[st.arn] = st
	return nil
}

func (s *Server) describeTable(in *dynamodb.DescribeTableInput) (*dynamodb.DescribeTableOutput, error) {
	name, err := tableName(in.TableName)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.lookup(name)
	if t == nil {
		return nil, fail(codeNotFound, "Requested resource not found: Table: %s not found", name)
	}
	return &dynamodb.DescribeTableOutput{Table: s.description(t)}, nil
}

// description describes a table; the mutex is held.
func (s *Server) description(t *table) *types.TableDescription {
	d := &types.TableDescription{
		TableName:            aws.String(t.name),
		TableArn:             aws.String(t.arn),
		TableId:              aws.String(t.id),
		TableStatus:          t.status(time.Now()),
		CreationDateTime:     aws.Time(t.created),
		KeySchema:            keySchema(t.partition, t.sort),
		ItemCount:            aws.Int64(int64(t.count)),
		TableSizeBytes:       aws.Int64(int64(t.totalBytes)),
		BillingModeSummary:   &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(t.partition.name), AttributeType: t.partition.kind}},
		ProvisionedThroughput: &types.ProvisionedThroughputDescription{
			ReadCapacityUnits: aws.Int64(0), WriteCapacityUnits: aws.Int64(0), NumberOfDecreasesToday: aws.Int64(0),
		},
		DeletionProtectionEnabled: aws.Bool(false),
	}
	if t.sort.name != "" {
		d.AttributeDefinitions = append(d.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(t.sort.name), AttributeType: t.sort.kind})
	}
	if st := t.stream; st != nil {
		d.LatestStreamArn, d.LatestStreamLabel = aws.String(st.arn), aws.String(st.label)
		if !st.disabled {
			d.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: st.view}
		}
	}
	return d
}

func keySchema(partition, sort keyAttr) []types.KeySchemaElement {
	schema := []types.KeySchemaElement{{AttributeName: aws.String(partition.name), KeyType: types.KeyTypeHash}}
	if sort.name != "" {
		schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(sort.name), KeyType: types.KeyTypeRange})
	}
	return schema
}

func (s *Server) updateTable(in *dynamodb.UpdateTableInput) (*dynamodb.UpdateTableOutput, error) {
	name, err := tableName(in.TableName)
	if err != nil {
		return nil, err
	}
	if in.StreamSpecification == nil && in.BillingMode == "" {
		return nil, invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.lookup(name)
	if t == nil {
		return nil, fail(codeNotFound, "Requested resource not found: Table: %s not found", name)
	}
	if status := t.status(time.Now()); status != types.TableStatusActive {
		return nil, fail(codeInUse, "Attempt to change a resource which is still in use: Table is being updated: %s", name)
	}
	if err := s.changeStream(t, in.StreamSpecification, false); err != nil {
		return nil, err
	}
	t.updating, t.readyAt = true, time.Now().Add(s.delay())
	d := s.description(t)
	d.TableStatus = types.TableStatusUpdating
	return &dynamodb.UpdateTableOutput{TableDescription: d}, nil
}

func (s *Server) deleteTable(in *dynamodb.DeleteTableInput) (*dynamodb.DeleteTableOutput, error) {
	name, err := tableName(in.TableName)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.lookup(name)
	if t == nil {
		return nil, fail(codeNotFound, "Requested resource not found: Table: %s not found", name)
	}
	if status := t.status(time.Now()); status != types.TableStatusActive {
		return nil, fail(codeInUse, "Attempt to change a resource which is still in use: Table is %s: %s", status, name)
	}
	if t.stream != nil {
		t.stream.disable()
	}
	t.deleteAt = time.Now().Add(s.delay())
	d := s.description(t)
	d.TableStatus = types.TableStatusDeleting
	s.lookup(name) // forgets the table at once when there is no delay
	return &dynamodb.DeleteTableOutput{TableDescription: d}, nil
}

func (s *Server) listTables(in *dynamodb.ListTablesInput) (*dynamodb.ListTablesOutput, error) {
	limit := 100
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	if limit < 1 || limit > 100 {
		return nil, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and 100", limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &dynamodb.ListTablesOutput{TableNames: []string{}}
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		switch {
		case name <= aws.ToString(in.ExclusiveStartTableName) || s.lookup(name) == nil:
		case len(out.TableNames) == limit:
			out.LastEvaluatedTableName = aws.String(out.TableNames[limit-1])
			return out, nil
		default:
			out.TableNames = append(out.TableNames, name)
		}
	}
	return out, nil
}
