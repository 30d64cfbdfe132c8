package infra_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/lockstream/lockstream/infra"
)

// TestNamesAreTheCodesOwn shows that this module sees the code's attribute names, and
// that it takes nothing else of the code along: neither the SDK nor the client.
func TestNamesAreTheCodesOwn(t *testing.T) {
	if infra.PartitionKey != "key" || infra.TTLAttribute != "ttl" {
		t.Errorf("partition key %q, TTL %q", infra.PartitionKey, infra.TTLAttribute)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		pkg := strings.TrimSpace(line)
		if strings.Contains(pkg, "aws-sdk-go") || strings.Contains(pkg, "lockstream/lockclient") {
			t.Errorf("this module depends on %s", pkg)
		}
	}
}
