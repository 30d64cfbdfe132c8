package fakedynamo_test

import (
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/lockstream/lockstream/internal/fakedynamo"
	"github.com/lockstream/lockstream/internal/fakedynamo/contract"
)

func TestContract(t *testing.T) {
	s := fakedynamo.New()
	t.Cleanup(s.Close)
	contract.Run(t, s.Client(), s.StreamsClient())
}

func TestContractWithoutHTTP(t *testing.T) {
	s := fakedynamo.New()
	t.Cleanup(s.Close)
	contract.RunOn(t, s.API(), s.API())
}

func TestContractOverSocket(t *testing.T) {
	s := fakedynamo.New()
	t.Cleanup(s.Close)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	contract.Run(t,
		s.Client(func(o *dynamodb.Options) { o.BaseEndpoint, o.HTTPClient = aws.String(web.URL), web.Client() }),
		s.StreamsClient(func(o *dynamodbstreams.Options) { o.BaseEndpoint, o.HTTPClient = aws.String(web.URL), web.Client() }),
	)
}
