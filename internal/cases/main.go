package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "folder of the project")
	write := flag.Bool("write", false, "bring the page's status column up to date first")
	flag.Parse()
	ok, err := run(os.Stdout, *root, *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// run checks the project at root and tells whether nothing is wrong. An error means that it could not check.
func run(w io.Writer, root string, write bool) (bool, error) {
	path := filepath.Join(root, "docs", "cases.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	page, err := parsePage(string(text))
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	named, wrong, err := scanTests(root)
	if err != nil {
		return false, err
	}
	if write {
		if err := page.write(path, named); err != nil {
			return false, err
		}
	}
	report := check(page, named)
	report.Wrong = append(wrong, report.Wrong...)
	return len(report.Wrong) == 0, report.print(w)
}

func (r *report) print(w io.Writer) error {
	for _, line := range r.Wrong {
		fmt.Fprintln(w, "wrong:", line)
	}
	for _, p := range r.Parts {
		state := "not finished"
		if p.Finished {
			state = "finished"
		}
		fmt.Fprintf(w, "%-13s owes %3d, named by tests %3d  %s\n", p.Part, p.Owed, p.Named, state)
	}
	if r.Stale > 0 {
		fmt.Fprintf(w, "%d named rows are still open on the page: make cases CASESFLAGS=-write\n", r.Stale)
	}
	result := struct {
		OK    bool         `json:"ok"`
		Rows  int          `json:"rows"`
		Named int          `json:"named"`
		Wrong int          `json:"wrong"`
		Parts []partReport `json:"parts"`
	}{len(r.Wrong) == 0, r.Rows, r.Named, len(r.Wrong), r.Parts}
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "RESULT %s\n", line)
	return err
}
