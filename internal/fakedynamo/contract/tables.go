package contract

import (
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (s *suite) tables(t *testing.T) {
	out, err := s.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(s.table)})
	if err != nil {
		t.Fatal(err)
	}
	d := out.Table
	if len(d.KeySchema) != 1 || aws.ToString(d.KeySchema[0].AttributeName) != "key" || d.KeySchema[0].KeyType != types.KeyTypeHash {
		t.Errorf("the key schema is %+v", d.KeySchema)
	}
	if sp := d.StreamSpecification; sp == nil || !aws.ToBool(sp.StreamEnabled) || sp.StreamViewType != types.StreamViewTypeNewAndOldImages || aws.ToString(d.LatestStreamArn) == "" {
		t.Errorf("the stream is %+v at %q", sp, aws.ToString(d.LatestStreamArn))
	}
	_, err = s.db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(s.table), BillingMode: types.BillingModePayPerRequest,
		KeySchema: d.KeySchema, AttributeDefinitions: d.AttributeDefinitions,
	})
	s.wantError(t, err, "ResourceInUseException", "")
	_, err = s.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(newName())})
	s.wantError(t, err, "ResourceNotFoundException", "")

	gone := s.createTable(t, nil, "")
	if _, err := s.db.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String(gone)}); err != nil {
		t.Fatal(err)
	}
	s.await(t, "the table to be gone", func() bool {
		_, err := s.db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(gone)})
		return isNotFound(err)
	})
	_, err = s.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(gone), Key: item{"key": str("a")}})
	s.wantError(t, err, "ResourceNotFoundException", "")
}

func (s *suite) timeToLive(t *testing.T) {
	table := s.createTable(t, nil, "")
	describe := func() *types.TimeToLiveDescription {
		out, err := s.db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(table)})
		if err != nil {
			t.Fatal(err)
		}
		return out.TimeToLiveDescription
	}
	if d := describe(); d.TimeToLiveStatus != types.TimeToLiveStatusDisabled || d.AttributeName != nil {
		t.Errorf("a new table has %+v", d)
	}
	enable := &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(table),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
	}
	if _, err := s.db.UpdateTimeToLive(t.Context(), enable); err != nil {
		t.Fatal(err)
	}
	d := describe()
	if !slices.Contains([]types.TimeToLiveStatus{types.TimeToLiveStatusEnabling, types.TimeToLiveStatusEnabled}, d.TimeToLiveStatus) || aws.ToString(d.AttributeName) != "ttl" {
		t.Errorf("an enabled table has %+v", d)
	}
	if !s.Lenient {
		_, err := s.db.UpdateTimeToLive(t.Context(), enable)
		s.wantError(t, err, "ValidationException", "already enabled")
	}
	_, err := s.db.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(newName())})
	s.wantError(t, err, "ResourceNotFoundException", "")
}

// sortKey checks a table with a sort key: keys, queries and their pages.
func (s *suite) sortKey(t *testing.T) {
	kind := types.ScalarAttributeTypeN
	table := s.createTable(t, &kind, "")
	for _, n := range []string{"10", "-3", "2.5", "100", "0", "7"} {
		s.put(t, table, item{"key": str("p"), "sort": num(n), "v": num(n)})
	}
	s.put(t, table, item{"key": str("q"), "sort": num("1")})
	query := func(condition string, change func(*dynamodb.QueryInput)) []string {
		t.Helper()
		var got []string
		in := &dynamodb.QueryInput{
			TableName: aws.String(table), KeyConditionExpression: aws.String(condition), ConsistentRead: aws.Bool(true),
			ExpressionAttributeNames:  used(map[string]string{"#k": "key"}, condition),
			ExpressionAttributeValues: used(item{":p": str("p"), ":low": num("2.5"), ":high": num("10"), ":none": str("none")}, condition),
		}
		change(in)
		pages := dynamodb.NewQueryPaginator(s.db, in)
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", condition, err)
			}
			for _, it := range out.Items {
				got = append(got, it["sort"].(*types.AttributeValueMemberN).Value)
			}
		}
		return got
	}
	plainly := func(*dynamodb.QueryInput) {}
	for condition, want := range map[string][]string{
		"#k = :p":                                 {"-3", "0", "2.5", "7", "10", "100"},
		"#k = :p AND sort = :low":                 {"2.5"},
		"#k = :p AND sort < :low":                 {"-3", "0"},
		"#k = :p AND sort >= :high":               {"10", "100"},
		"#k = :p AND sort BETWEEN :low AND :high": {"2.5", "7", "10"},
		"#k = :none":                              nil,
	} {
		if got := query(condition, plainly); !slices.Equal(got, want) {
			t.Errorf("%s gives %v, want %v", condition, got, want)
		}
	}
	paged := func(in *dynamodb.QueryInput) { in.Limit, in.ScanIndexForward = aws.Int32(2), aws.Bool(false) }
	if got, want := query("#k = :p", paged), []string{"100", "10", "7", "2.5", "0", "-3"}; !slices.Equal(got, want) {
		t.Errorf("backward by pages gives %v, want %v", got, want)
	}
	filtered := func(in *dynamodb.QueryInput) {
		in.FilterExpression = aws.String("v > :high")
		in.ExpressionAttributeValues[":high"] = num("5")
	}
	if got, want := query("#k = :p", filtered), []string{"7", "10", "100"}; !slices.Equal(got, want) {
		t.Errorf("a filter gives %v, want %v", got, want)
	}
	_, err := s.db.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: item{"key": str("p")}})
	s.wantError(t, err, "ValidationException", "")
}

func (s *suite) scan(t *testing.T) {
	table := s.createTable(t, nil, "")
	for i := range 20 {
		s.put(t, table, item{"key": str("k" + strconv.Itoa(i)), "n": num(strconv.Itoa(i))})
	}
	scan := func(in *dynamodb.ScanInput) (keys map[string]int) {
		t.Helper()
		keys = map[string]int{}
		in.TableName = aws.String(table)
		pages := dynamodb.NewScanPaginator(s.db, in)
		for pages.HasMorePages() {
			out, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range out.Items {
				keys[it["key"].(*types.AttributeValueMemberS).Value]++
			}
		}
		return keys
	}
	once := func(keys map[string]int, want int) {
		t.Helper()
		for key, n := range keys {
			if n != 1 {
				t.Errorf("%s occurs %d times", key, n)
			}
		}
		if len(keys) != want {
			t.Errorf("found %d items, want %d", len(keys), want)
		}
	}
	once(scan(&dynamodb.ScanInput{}), 20)
	once(scan(&dynamodb.ScanInput{Limit: aws.Int32(3)}), 20)
	once(scan(&dynamodb.ScanInput{Limit: aws.Int32(3), FilterExpression: aws.String("n >= :n"), ExpressionAttributeValues: item{":n": num("15")}}), 5)
	both := scan(&dynamodb.ScanInput{Segment: aws.Int32(0), TotalSegments: aws.Int32(2)})
	for key, n := range scan(&dynamodb.ScanInput{Segment: aws.Int32(1), TotalSegments: aws.Int32(2), Limit: aws.Int32(2)}) {
		both[key] += n
	}
	once(both, 20)
	out, err := s.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(table), Select: types.SelectCount, ProjectionExpression: nil})
	if err != nil || out.Count != 20 || len(out.Items) != 0 {
		t.Errorf("count: %+v, %v", out, err)
	}
}
