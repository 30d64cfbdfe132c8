package emulator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// EnvBinary names the environment variable that gives the path of the emulator's binary.
const EnvBinary = "LOCKSTREAM_EMULATOR"

// ErrNotInstalled is the error of [Start] and [Binary] when there is no emulator to start; its text says what to do.
var ErrNotInstalled = errors.New("emulator: not installed")

const modulePath = "github.com/lockstream/lockstream"

// packages maps GOOS/GOARCH to the npm package with the emulator for it, as pinned in integration/emulator.
var packages = map[string]string{
	"linux/amd64": "@dynoxide/linux-x64",
}

// Binary returns the path of the emulator's binary: that of LOCKSTREAM_EMULATOR, or the one that make setup installs
// into the project's folder, which is looked for above the working folder and above the running program.
func Binary() (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrNotInstalled, EnvBinary, err)
		}
		return path, nil
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	pkg, ok := packages[platform]
	if !ok {
		return "", fmt.Errorf("%w: there is no emulator package for %s: set %s to a DynamoDB endpoint, or %s to an emulator's binary",
			ErrNotInstalled, platform, envDynamoDB, EnvBinary)
	}
	root, err := projectRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".build", "emulator", "node_modules", filepath.FromSlash(pkg), "dynoxide")
	if err := executable(path); err != nil {
		return "", fmt.Errorf("%w: run make setup in %s", ErrNotInstalled, root)
	}
	return path, nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// projectRoot finds the project's folder from the working folder (tests, go run) or from the program's own place
// (a binary in .build/bin that was started elsewhere).
func projectRoot() (string, error) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, start := range starts {
		if root, ok := rootAbove(start); ok {
			return root, nil
		}
	}
	return "", fmt.Errorf("%w: no folder of module %s above %s: set %s or %s",
		ErrNotInstalled, modulePath, strings.Join(starts, " or "), envDynamoDB, EnvBinary)
}

func rootAbove(dir string) (string, bool) {
	for {
		if moduleOf(filepath.Join(dir, "go.mod")) == modulePath {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func moduleOf(goMod string) string {
	text, err := os.ReadFile(goMod)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return strings.Trim(fields[1], `"`)
		}
	}
	return ""
}
