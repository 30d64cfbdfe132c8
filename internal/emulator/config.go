package emulator

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

const (
	defaultRegion = "us-east-1"
	// The emulator checks no signature; the SDK only wants something to sign with.
	dummyKey    = "emulator"
	dummySecret = "emulator"
)

// Config returns the SDK configuration for this endpoint. A started emulator, and a loopback endpoint for which the
// environment has no credentials, get dummy credentials and no file or network is read; any other endpoint gets
// the SDK's own chain. The region is us-east-1 where nothing else is set.
func (e *Emulator) Config(ctx context.Context) (aws.Config, error) {
	if e.dummyCredentials() {
		return aws.Config{
			Region:      e.region(),
			Credentials: credentials.NewStaticCredentialsProvider(dummyKey, dummySecret, ""),
		}, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithDefaultRegion(defaultRegion))
	if err != nil {
		return aws.Config{}, fmt.Errorf("emulator: SDK configuration for %s: %w", e.endpoint, err)
	}
	return cfg, nil
}

// Client returns a DynamoDB client for this endpoint, with the settings of [Emulator.Config].
func (e *Emulator) Client(ctx context.Context, optFns ...func(*dynamodb.Options)) (*dynamodb.Client, error) {
	cfg, err := e.Config(ctx)
	if err != nil {
		return nil, err
	}
	base := func(o *dynamodb.Options) { o.BaseEndpoint = aws.String(e.endpoint) }
	return dynamodb.NewFromConfig(cfg, append([]func(*dynamodb.Options){base}, optFns...)...), nil
}

// StreamsClient returns a DynamoDB Streams client for this endpoint, with the settings of [Emulator.Config].
func (e *Emulator) StreamsClient(ctx context.Context, optFns ...func(*dynamodbstreams.Options)) (*dynamodbstreams.Client, error) {
	cfg, err := e.Config(ctx)
	if err != nil {
		return nil, err
	}
	base := func(o *dynamodbstreams.Options) {
		if e.streams != "" {
			o.BaseEndpoint = aws.String(e.streams)
		}
	}
	return dynamodbstreams.NewFromConfig(cfg, append([]func(*dynamodbstreams.Options){base}, optFns...)...), nil
}

// dummyCredentials tells whether the endpoint takes any credentials: always for our own process, and for somebody's
// local emulator when the environment brings none. Without this the SDK would look for a metadata service for seconds.
func (e *Emulator) dummyCredentials() bool {
	if e.proc != nil {
		return true
	}
	if os.Getenv("AWS_ACCESS_KEY_ID") != "" || os.Getenv("AWS_PROFILE") != "" {
		return false
	}
	host, err := hostOf(e.endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (e *Emulator) region() string {
	if e.proc != nil {
		return defaultRegion
	}
	return firstOf(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), defaultRegion)
}
