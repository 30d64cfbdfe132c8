// Package integration tests the parts together, on the local emulator: real SDK clients,
// a real stream, several operating-system processes.
//
// Every test starts an emulator of its own on loopback and stops it by its process id.
// An endpoint given by the SDK's variables (AWS_ENDPOINT_URL_DYNAMODB) is used instead.
// There is no skipping: without an emulator the tests fail and say what to do.
package integration
