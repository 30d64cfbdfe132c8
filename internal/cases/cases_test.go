package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const testPage = `# Cases

Finished parts: one

| part | what it is |
|---|---|
| one | the first |
| two | the second |

| id | fault | required | owner | status |
|---|---|---|---|---|
| X1 | open of course | r | one | open |
| X2 | f | r | one | open |
| Y1 | f | r | two | open |
`

// project writes a project with a page and one test file, and returns its folder.
func project(t *testing.T, page, test string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"docs/cases.md":                   page,
		"a/a_test.go":                     test,
		"a/a.go":                          "package a\n\n// Cases: Z1\n",
		"a/testdata/b_test.go":            "package b\n\n// Cases: Z2\n",
		".build/c/c_test.go":              "not even Go",
		"infra/node_modules/x/xy_test.go": "not even Go",
	}
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const goodTest = `package a

// TestX is about something.
//
// Cases: X1, X2
func TestX(t *testing.T) {
	for range 3 {
		// Cases: Y1
		t.Run("inner", nil)
	}
}
`

func TestAllIsWell(t *testing.T) {
	var out strings.Builder
	ok, err := run(&out, project(t, testPage, goodTest), false)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Errorf("something is wrong:\n%s", out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last, found := strings.CutPrefix(lines[len(lines)-1], "RESULT ")
	var result struct {
		OK                 bool
		Rows, Named, Wrong int
		Parts              []partReport
	}
	if err := json.Unmarshal([]byte(last), &result); !found || err != nil {
		t.Fatalf("last line %q: %v", lines[len(lines)-1], err)
	}
	want := []partReport{{"one", true, 2, 2}, {"two", false, 1, 1}}
	if !result.OK || result.Rows != 3 || result.Named != 3 || result.Wrong != 0 || !slices.Equal(result.Parts, want) {
		t.Errorf("result %+v", result)
	}
}

func TestWhatIsWrongIsFound(t *testing.T) {
	replace := strings.NewReplacer
	for _, test := range []struct {
		name       string
		page, test *strings.Replacer
		want       string
	}{
		{name: "owed and not named", test: replace("X1, X2", "X1"), want: "finished part one owes: X2"},
		{name: "nothing named", test: replace("Cases: X1, X2", "", "Cases: Y1", ""), want: "finished part one owes: X1, X2"},
		{name: "named and unknown", test: replace("Y1", "Y9"), want: "Y9 is named at"},
		{name: "tested and not named", page: replace("two | open", "two | tested"), test: replace("Cases: Y1", ""), want: "Y1 is tested on the page"},
		{name: "tested by a finished part and not named", page: replace("X2 | f | r | one | open", "X2 | f | r | one | tested"), test: replace("X1, X2", "X1"), want: "owes: X2"},
		{name: "singular", test: replace("Cases: Y1", "Case: Y1"), want: "want a comment line"},
		{name: "lower case", test: replace("Cases: Y1", "cases: Y1"), want: "want a comment line"},
		{name: "no space", test: replace("// Cases: Y1", "//Cases: Y1"), want: "want a comment line"},
		{name: "block comment", test: replace("// Cases: Y1", "/* Cases: Y1 */"), want: "want a comment line"},
		{name: "separator", test: replace("X1, X2", "X1 X2"), want: "want ids"},
		{name: "trailing text", test: replace("X1, X2", "X1, X2 (all)"), want: "want ids"},
		{name: "no ids", test: replace("Cases: Y1", "Cases: none"), want: "want ids"},
		{name: "outside a function", test: replace("package a\n", "package a\n\n// Cases: Y1\n"), want: "outside a test function"},
		{name: "in a helper", test: replace("func TestX(", "func helpX("), want: "in helpX, which is not a test"},
		{name: "in a method", test: replace("func TestX(", "func (s *suite) TestX("), want: "in TestX, which is not a test"},
		{name: "in TestMain", test: replace("func TestX(", "func TestMain("), want: "which is not a test"},
		{name: "in a test that skips", test: replace("for range 3 {", "for range 3 {\nt.Skipf(\"no\")"), want: "in TestX, which skips"},
	} {
		t.Run(test.name, func(t *testing.T) {
			page, code := testPage, goodTest
			if test.page != nil {
				page = test.page.Replace(page)
			}
			if test.test != nil {
				code = test.test.Replace(code)
			}
			var out strings.Builder
			ok, err := run(&out, project(t, page, code), false)
			if err != nil {
				t.Fatal(err)
			}
			if ok || !strings.Contains(out.String(), test.want) || !strings.Contains(out.String(), `RESULT {"ok":false`) {
				t.Errorf("ok = %v, want false and %q in:\n%s", ok, test.want, out.String())
			}
		})
	}
}

func TestMalformedPages(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"id twice", "X2", "X1", "a second time"},
		{"bad id", "X2", "x2", "not an id"},
		{"unknown owner", "r | two", "r | three", `owner "three"`},
		{"unknown status", "two | open", "two | done", `status "done"`},
		{"unknown finished part", "parts: one", "parts: one, three", `"three"`},
		{"no finished parts", "Finished parts: one", "", `finished part ""`},
		{"two lists", "Finished parts: one", "Finished parts: one\nFinished parts: two", "second list"},
		{"cell missing", "| X2 | f ", "| X2 ", "4 cells"},
		{"cell too many", "| X2 | f ", "| X2 | f | f ", "6 cells"},
		{"empty cell", "| X2 | f ", "| X2 | ", "empty cell"},
		{"row cut", "| X2 | f | r | one | open |", "| X2 | f | r | one | open", "not a whole table row"},
		{"other table", "| id |", "| no. |", `begins with "no."`},
		{"no rows", testPage[strings.Index(testPage, "| X1"):], "", "no rows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			page := strings.Replace(testPage, test.old, test.new, 1)
			if page == testPage {
				t.Fatal("the page was not changed")
			}
			if _, err := parsePage(page); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestWriteSetsTheStatusAndNothingElse(t *testing.T) {
	page := strings.Replace(testPage, "two | open", "two | tested", 1)
	root := project(t, page, strings.Replace(goodTest, "Cases: Y1", "", 1))
	for range 2 { // the second time there is nothing to do
		var out strings.Builder
		ok, err := run(&out, root, true)
		if err != nil || !ok {
			t.Fatalf("ok = %v, %v\n%s", ok, err, out.String())
		}
		got, err := os.ReadFile(filepath.Join(root, "docs", "cases.md"))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(testPage, "one | open", "one | tested"); string(got) != want {
			t.Errorf("page:\n%s\nwant:\n%s", got, want)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	if _, err := run(&strings.Builder{}, t.TempDir(), false); err == nil {
		t.Error("no error without a page")
	}
	if _, err := run(&strings.Builder{}, project(t, testPage, "package"), false); err == nil {
		t.Error("no error for a test file that is no Go")
	}
}

// TestTheRealPage holds for the project's own page, whatever the tests name by now.
func TestTheRealPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePage(string(text))
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, r := range p.rows {
		groups[strings.TrimRight(r.id, "0123456789")] = true
	}
	got := strings.Join(slices.Sorted(maps.Keys(groups)), " ")
	if want := "A B C D E F G H I J K L M N O P Q R S SF"; got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
}
