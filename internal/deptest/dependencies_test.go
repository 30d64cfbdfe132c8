package deptest

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documentedLine is one line of docs/dependencies.md: a list item that begins with the path in backquotes and goes on with the reason.
var documentedLine = regexp.MustCompile("(?m)^- `([^`]+)`[^:\n]*: *(.*)$")

// documented returns the dependencies that a text gives a reason for.
func documented(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range documentedLine.FindAllStringSubmatch(text, -1) {
		if strings.TrimSpace(m[2]) != "" {
			found[m[1]] = true
		}
	}
	return found
}

// missing returns what is in want and not in have, in order.
func missing(have, want map[string]bool) []string {
	var paths []string
	for path := range want {
		if !have[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Tool []struct{ Path string }
}

func readGoMod(t *testing.T, dir string) goMod {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod goMod
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	return mod
}

// direct returns the modules that the project's code and tests import, those that go.mod calls direct, and its tools.
func direct(g graph, mod goMod) map[string]bool {
	found := map[string]bool{}
	for _, path := range g.ours() {
		p := g.get(path)
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if d := g[i]; d != nil && d.Module != nil && d.Module.Path != module {
				found[d.Module.Path] = true
			}
		}
	}
	for _, r := range mod.Require {
		if !r.Indirect {
			found[r.Path] = true
		}
		for _, tool := range mod.Tool {
			if within(tool.Path, r.Path) {
				found[r.Path] = true
			}
		}
	}
	return found
}

func npmPackages(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Dependencies         map[string]string
		DevDependencies      map[string]string
		OptionalDependencies map[string]string
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, group := range []map[string]string{manifest.Dependencies, manifest.DevDependencies, manifest.OptionalDependencies} {
		for name, version := range group {
			if !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(version) {
				t.Errorf("%s: %s has version %q, want an exact one", path, name, version)
			}
			found[name] = true
		}
	}
	return found
}

func TestEveryDirectDependencyHasItsReason(t *testing.T) {
	root := projectRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	have := documented(string(text))
	mod := readGoMod(t, root)
	npm := npmPackages(t, filepath.Join(root, "integration", "emulator", "package.json"))

	want := direct(load(t, root), mod)
	maps.Copy(want, npm)
	if len(want) < 5 {
		t.Fatalf("only %d dependencies were found: %v", len(want), want)
	}
	for _, path := range missing(have, want) {
		t.Errorf("docs/dependencies.md has no line for %s", path)
	}

	required := npm
	for _, r := range mod.Require {
		required[r.Path] = true
	}
	for _, path := range missing(required, have) {
		t.Errorf("docs/dependencies.md has a line for %s, which is not required", path)
	}
}

func TestDocumentedLines(t *testing.T) {
	have := documented("- `a/b`: why\n- `c` (tool): why\n- `no-reason`:\n- `no-colon` why\n`no-item`: why\n")
	if want := map[string]bool{"a/b": true, "c": true}; !maps.Equal(have, want) {
		t.Errorf("documented %v, want %v", have, want)
	}
	if got := missing(have, map[string]bool{"a/b": true, "z": true, "y": true}); !slices.Equal(got, []string{"y", "z"}) {
		t.Errorf("missing %v", got)
	}
}
