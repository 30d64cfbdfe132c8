package deptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/lockstream/lockstream"

// pkg is what the rules look at, as go list prints it.
type pkg struct {
	ImportPath   string
	Name         string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string // all that the package's own code (not its tests) needs, transitively
	Module       *struct{ Path string }
}

// graph is every package by its import path.
type graph map[string]*pkg

// load lists the packages of the module in dir and all their dependencies, those of tests too.
func load(t *testing.T, dir string) graph {
	t.Helper()
	touchSources(t, dir)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-json=ImportPath,Name,Standard,Imports,TestImports,XTestImports,Deps,Module", "./...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v\n%s", dir, err, stderr.String())
	}
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return g
		} else if err != nil {
			t.Fatal(err)
		}
		// With -test, go list adds test binaries ("x.test") and packages built for a test ("x [x.test]").
		if !strings.HasSuffix(p.ImportPath, ".test") && !strings.Contains(p.ImportPath, " ") {
			g[p.ImportPath] = p
		}
	}
}

// touchSources looks at every source file. The go command keeps the result of a test until a file changes that the
// test itself has looked at; without this it would not see what go list reads.
func touchSources(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != dir && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") || d.Name() == "go.mod" {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func projectRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return root
}

// ours returns the project's packages in order, by their path within the project.
func (g graph) ours() []string {
	var paths []string
	for path := range maps.Keys(g) {
		if short, ok := short(path); ok {
			paths = append(paths, short)
		}
	}
	slices.Sort(paths)
	return paths
}

func (g graph) get(short string) *pkg { return g[module+"/"+short] }

func short(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

// within tells whether a path is one of the given packages or below one of them.
func within(path string, packages ...string) bool {
	return slices.ContainsFunc(packages, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

// list makes a graph of the form that load returns, for the tests of the rules themselves: each entry is
// "package: what it imports directly"; a package is main when its path begins with cmd.
func list(t *testing.T, entries ...string) graph {
	t.Helper()
	g := graph{}
	full := func(path string) string {
		if strings.HasPrefix(path, "std:") {
			return strings.TrimPrefix(path, "std:")
		}
		return module + "/" + path
	}
	for _, entry := range entries {
		path, imports, ok := strings.Cut(entry, ":")
		if !ok {
			t.Fatalf("entry %q", entry)
		}
		p := &pkg{ImportPath: full(path), Name: "p"}
		if within(path, "cmd") {
			p.Name = "main"
		}
		for _, i := range strings.Fields(imports) {
			p.Imports = append(p.Imports, full(i))
			if strings.HasPrefix(i, "std:") {
				g[full(i)] = &pkg{ImportPath: full(i), Standard: true}
			}
		}
		g[p.ImportPath] = p
	}
	for _, p := range g {
		p.Deps = g.closure(p)
	}
	return g
}

func (g graph) closure(p *pkg) []string {
	seen := map[string]bool{}
	var visit func(p *pkg)
	visit = func(p *pkg) {
		for _, i := range p.Imports {
			if !seen[i] && g[i] != nil {
				seen[i] = true
				visit(g[i])
			}
		}
	}
	visit(p)
	return slices.Sorted(maps.Keys(seen))
}
