package deptest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// existing packages must be there, so that a misspelt name in a rule cannot pass as a package that has not come yet.
var existing = []string{
	"lockclient", "lockevent", "streamwatcher",
	"internal/lockitem", "internal/lockattr", "internal/fakedynamo", "internal/emulator", "internal/emulator/emulatortest",
}

// planned packages may be there; a rule about one has nothing to check before.
var planned = []string{
	"internal/bench", "cmd", "cmd/lockstream", "examples", "integration", "internal/reap", "lambda", "lambda/lambdalock", "lambda/reaper",
	"lockclient/locktest",
}

// programs are what nothing else imports.
var programs = []string{"cmd", "examples", "integration"}

// never lists, for a package and all below it, what its own code (tests apart) must not need, not even indirectly.
var never = map[string][]string{
	"lockclient":          {"streamwatcher", "internal/emulator", "internal/reap", "lambda"},
	"streamwatcher":       {"lockclient", "internal/emulator", "internal/reap", "lambda"},
	"internal/lockitem":   {"lockclient", "streamwatcher"},
	"internal/fakedynamo": {"lockclient", "streamwatcher", "internal/emulator"},
	"internal/emulator":   {"lockclient", "streamwatcher", "internal/fakedynamo"},
	"internal/reap":       {"lockclient", "streamwatcher"},
	"lambda/reaper":       {"lockclient", "streamwatcher"},
	"lambda/lambdalock":   {"streamwatcher"},
}

// leaves lists the packages that may need nothing of the project but this, and nothing outside the standard library.
var leaves = map[string][]string{
	"lockevent": {},
}

// importFree lists the packages that import nothing at all.
var importFree = []string{"internal/lockattr"}

// onlyFor lists who may import a package in its own code (tests apart); below a listed one counts too.
var onlyFor = map[string][]string{
	"internal/fakedynamo": {"internal/fakedynamo", "lockclient/locktest", "integration"},
	"internal/emulator":   {"internal/emulator", "internal/bench", "examples", "integration"},
}

// testSupport may import testing: it is for tests, and no binary needs it.
var testSupport = []string{"internal/emulator/emulatortest", "internal/fakedynamo", "lockclient/locktest", "integration"}

// violations returns what in the graph breaks a rule.
func violations(g graph) []string {
	var bad []string
	for _, path := range g.ours() {
		bad = append(bad, forbidden(g, path)...)
		bad = append(bad, leafViolations(g, path)...)
		bad = append(bad, importerViolations(g, path)...)
		if needsTesting(g, path) {
			bad = append(bad, fmt.Sprintf("%s needs testing", path))
		}
	}
	return bad
}

func forbidden(g graph, path string) (bad []string) {
	for _, dep := range g.get(path).Deps {
		d, ok := short(dep)
		if !ok {
			continue
		}
		for part, deny := range never {
			if within(path, part) && within(d, deny...) {
				bad = append(bad, fmt.Sprintf("%s needs %s", path, d))
			}
		}
		if within(d, programs...) && !within(path, programs...) {
			bad = append(bad, fmt.Sprintf("%s needs the program %s", path, d))
		}
	}
	return bad
}

func leafViolations(g graph, path string) (bad []string) {
	p := g.get(path)
	if slices.Contains(importFree, path) && len(p.Imports) > 0 {
		bad = append(bad, fmt.Sprintf("%s imports %s, want no imports", path, strings.Join(p.Imports, ", ")))
	}
	allowed, ok := leaves[path]
	if !ok {
		return bad
	}
	for _, dep := range p.Deps {
		if d, ok := short(dep); ok && slices.Contains(allowed, d) || g[dep] != nil && g[dep].Standard {
			continue
		}
		bad = append(bad, fmt.Sprintf("%s needs %s, want the standard library only", path, dep))
	}
	return bad
}

func importerViolations(g graph, path string) (bad []string) {
	for _, dep := range g.get(path).Imports {
		d, ok := short(dep)
		if !ok {
			continue
		}
		for target, importers := range onlyFor {
			if within(d, target) && !within(path, importers...) {
				bad = append(bad, fmt.Sprintf("%s imports %s in its own code", path, d))
			}
		}
	}
	return bad
}

func needsTesting(g graph, path string) bool {
	p := g.get(path)
	if within(path, testSupport...) && p.Name != "main" {
		return false
	}
	return slices.ContainsFunc(p.Deps, func(dep string) bool { return within(dep, "testing") })
}

func TestArrows(t *testing.T) {
	g := load(t, projectRoot(t))
	for _, bad := range violations(g) {
		t.Error(bad)
	}
}

// TestInfraKnowsAttributeNamesOnly guards the nested module, which is deployed without the rest.
func TestInfraKnowsAttributeNamesOnly(t *testing.T) {
	dir := filepath.Join(projectRoot(t), "infra")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); os.IsNotExist(err) {
		t.Log("there is no infra module yet")
		return
	}
	g := load(t, dir)
	for _, path := range g.ours() {
		if !within(path, "infra", "internal/lockattr") {
			t.Errorf("infra needs %s", path)
		}
	}
}

// TestRulesNamePackagesThatExist catches a misspelt rule.
func TestRulesNamePackagesThatExist(t *testing.T) {
	g := load(t, projectRoot(t))
	for _, path := range existing {
		if g.get(path) == nil {
			t.Errorf("package %s does not exist", path)
		}
	}
	known := slices.Concat(existing, planned)
	for _, path := range ruleNames() {
		if !slices.Contains(known, path) {
			t.Errorf("a rule names %s, which is neither existing nor planned", path)
		}
	}
}

func ruleNames() []string {
	names := slices.Concat(importFree, testSupport, programs)
	for _, rules := range []map[string][]string{never, leaves, onlyFor} {
		for path, others := range rules {
			names = append(append(names, path), others...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestRulesBite feeds each rule with a graph that breaks it.
func TestRulesBite(t *testing.T) {
	good := []string{
		"internal/lockattr:", "lockevent: std:time", "internal/lockitem: internal/lockattr lockevent std:time",
		"lockclient: internal/lockitem lockevent", "streamwatcher: internal/lockitem lockevent", "internal/fakedynamo: std:testing",
		"internal/fakedynamo/contract: internal/fakedynamo std:testing", "lockclient/locktest: lockclient internal/fakedynamo std:testing",
		"internal/emulator: std:time", "examples/fleet: lockclient streamwatcher internal/emulator",
		"lambda/lambdalock: lockclient", "internal/reap: internal/lockitem", "lambda/reaper: internal/reap", "cmd/lockstream: lockclient streamwatcher internal/reap",
	}
	if bad := violations(list(t, good...)); len(bad) > 0 {
		t.Fatalf("a good graph: %v", bad)
	}
	for _, test := range []struct{ entry, want string }{
		{"lockclient: streamwatcher", "lockclient needs streamwatcher"},
		{"lockclient/inner: streamwatcher", "lockclient/inner needs streamwatcher"},
		{"streamwatcher: lockclient", "streamwatcher needs lockclient"},
		{"streamwatcher: lambda/lambdalock", "streamwatcher needs lockclient"},
		{"internal/lockitem: streamwatcher", "internal/lockitem needs streamwatcher"},
		{"internal/reap: lockclient", "internal/reap needs lockclient"},
		{"lambda/reaper: streamwatcher", "lambda/reaper needs streamwatcher"},
		{"lambda/lambdalock: streamwatcher", "lambda/lambdalock needs streamwatcher"},
		{"lockevent: internal/lockattr", "lockevent needs " + module + "/internal/lockattr"},
		{"internal/lockattr: std:time", "internal/lockattr imports time"},
		{"lockclient: internal/fakedynamo", "lockclient imports internal/fakedynamo in its own code"},
		{"cmd/lockstream: internal/fakedynamo/contract", "cmd/lockstream imports internal/fakedynamo/contract in its own code"},
		{"cmd/lockstream: internal/emulator", "cmd/lockstream imports internal/emulator in its own code"},
		{"lockclient: examples/fleet", "lockclient needs the program examples/fleet"},
		{"cmd/lockstream: std:testing", "cmd/lockstream needs testing"},
		{"lockclient: std:testing/synctest", "lockclient needs testing/synctest"},
	} {
		entries := slices.DeleteFunc(slices.Clone(good), func(e string) bool {
			return strings.HasPrefix(e, test.entry[:strings.Index(test.entry, ":")+1])
		})
		bad := violations(list(t, append(entries, test.entry)...))
		want := strings.Replace(test.want, "needs testing/synctest", "needs testing", 1)
		if !slices.ContainsFunc(bad, func(b string) bool { return strings.HasPrefix(b, want) }) {
			t.Errorf("%s: got %q, want %q", test.entry, bad, want)
		}
	}
}
