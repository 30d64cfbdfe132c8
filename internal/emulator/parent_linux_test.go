package emulator_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/lockstream/lockstream/internal/emulator"
)

func TestEndsWithItsParent(t *testing.T) {
	if os.Getenv("EMULATOR_TEST_PARENT") != "" {
		e, err := emulator.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("ENDPOINT", e.Endpoint())
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test kills this process
		return
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestEndsWithItsParent$")
	parent.Env = append(os.Environ(), "EMULATOR_TEST_PARENT=1")
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	endpoint := ""
	for lines := bufio.NewScanner(stdout); endpoint == "" && lines.Scan(); {
		endpoint, _ = strings.CutPrefix(lines.Text(), "ENDPOINT ")
	}
	conn := dial(t, endpoint)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Fatal("the parent ended by itself")
	}
	waitClosed(t, conn)
}
