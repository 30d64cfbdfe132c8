package fakedynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// credentials are made up: nothing is looked up anywhere, and nothing is
// shared between synctest bubbles.
var credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "fake", SecretAccessKey: "fake", Source: "fakedynamo"}, nil
})

// Client gives a client of the real SDK that talks to this server without
// network, environment or disk. The SDK's defaults, such as its retries, apply
// unless optFns change them.
func (s *Server) Client(optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: s.region, Credentials: credentials, HTTPClient: s,
		BaseEndpoint: aws.String("http://fakedynamo.invalid"),
	}, optFns...)
}

// StreamsClient is [Server.Client] for DynamoDB Streams.
func (s *Server) StreamsClient(optFns ...func(*dynamodbstreams.Options)) *dynamodbstreams.Client {
	return dynamodbstreams.New(dynamodbstreams.Options{
		Region: s.region, Credentials: credentials, HTTPClient: s,
		BaseEndpoint: aws.String("http://fakedynamo.invalid"),
	}, optFns...)
}
