package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

const marker = "// Cases: "

// nearMiss matches comments that look like the marker, right or wrong: a misspelt one must not pass for prose.
var nearMiss = regexp.MustCompile(`(?i)^(//|/\*)\s*cases?\s*:`)

// scanTests returns, for every id that a test names, the places where it does, and what is wrong with such comments.
func scanTests(root string) (named map[string][]string, wrong []string, err error) {
	named = map[string][]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		more, err := scanFile(path, named)
		wrong = append(wrong, more...)
		return err
	})
	return named, wrong, err
}

func scanFile(path string, named map[string][]string) (wrong []string, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if !nearMiss.MatchString(comment.Text) {
				continue
			}
			place := fset.Position(comment.Pos()).String()
			ids, problem := idsOf(comment.Text)
			if problem == "" {
				problem = placeProblem(file, comment)
			}
			if problem != "" {
				wrong = append(wrong, place+": "+problem)
				continue
			}
			for _, id := range ids {
				named[id] = append(named[id], place)
			}
		}
	}
	return wrong, nil
}

func idsOf(comment string) (ids []string, problem string) {
	list, ok := strings.CutPrefix(comment, marker)
	if !ok {
		return nil, fmt.Sprintf("%q: want a comment line that begins with %q", comment, marker)
	}
	for id := range strings.SplitSeq(list, ", ") {
		if !idPattern.MatchString(id) {
			return nil, fmt.Sprintf("%q: want ids with a comma and a space between them", comment)
		}
		ids = append(ids, id)
	}
	return ids, ""
}

// placeProblem tells why a comment's place does not make a test of it, or nothing.
func placeProblem(file *ast.File, comment *ast.Comment) string {
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start := fn.Pos()
		if fn.Doc != nil {
			start = fn.Doc.Pos()
		}
		if comment.Pos() < start || comment.Pos() >= fn.End() {
			continue
		}
		if fn.Recv != nil || !isTestName(fn.Name.Name) {
			return fmt.Sprintf("names cases in %s, which is not a test", fn.Name.Name)
		}
		if skips(fn) {
			return fmt.Sprintf("names cases in %s, which skips", fn.Name.Name)
		}
		return ""
	}
	return "names cases outside a test function"
}

func isTestName(name string) bool {
	return strings.HasPrefix(name, "Test") && name != "TestMain" ||
		strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example")
}

func skips(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
				switch sel.Sel.Name {
				case "Skip", "Skipf", "SkipNow":
					found = true
				}
			}
		}
		return !found
	})
	return found
}
