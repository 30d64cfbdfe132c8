package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

const (
	statusOpen   = "open"
	statusTested = "tested"
)

var idPattern = regexp.MustCompile(`^[A-Z]{1,2}[1-9][0-9]{0,2}$`)

// row is one case of the page.
type row struct {
	id, owner, status string
	line              int // index into page.lines
}

// page is docs/cases.md.
type page struct {
	lines    []string
	parts    []string // in the page's order
	finished map[string]bool
	rows     []row
}

// parsePage reads the list of finished parts and every table whose header begins with "part" or "id". Whatever is
// malformed is an error, because a row that is silently skipped would be a case that nobody owes.
func parsePage(text string) (*page, error) {
	p := &page{lines: strings.Split(text, "\n"), finished: map[string]bool{}}
	var finished string
	kind := "" // first header cell of the table that a line stands in
	for i, line := range p.lines {
		if list, ok := strings.CutPrefix(line, "Finished parts:"); ok {
			if finished != "" {
				return nil, fmt.Errorf("line %d: a second list of finished parts", i+1)
			}
			finished = list
			continue
		}
		cells := cellsOf(line)
		switch {
		case cells == nil:
			kind = ""
			if strings.HasPrefix(strings.TrimSpace(line), "|") {
				return nil, fmt.Errorf("line %d: not a whole table row", i+1)
			}
		case kind == "":
			kind = cells[0]
			if kind != "part" && kind != "id" {
				return nil, fmt.Errorf("line %d: a table begins with %q, want part or id", i+1, kind)
			}
		case strings.Trim(cells[0], "-:") == "":
		case kind == "part":
			p.parts = append(p.parts, cells[0])
		default:
			if err := p.addRow(cells, i); err != nil {
				return nil, err
			}
		}
	}
	return p, p.validate(finished)
}

func (p *page) addRow(cells []string, line int) error {
	if len(cells) != 5 {
		return fmt.Errorf("line %d: %d cells, want id, fault, required, owner, status", line+1, len(cells))
	}
	for _, cell := range cells {
		if cell == "" {
			return fmt.Errorf("line %d: an empty cell", line+1)
		}
	}
	p.rows = append(p.rows, row{id: cells[0], owner: cells[3], status: cells[4], line: line})
	return nil
}

func (p *page) validate(finished string) error {
	known := map[string]bool{}
	for _, part := range p.parts {
		known[part] = true
	}
	var errs []error
	for part := range strings.SplitSeq(finished, ",") {
		part = strings.TrimSpace(part)
		if !known[part] {
			errs = append(errs, fmt.Errorf("finished part %q is not in the table of parts", part))
		}
		p.finished[part] = true
	}
	seen := map[string]bool{}
	for _, r := range p.rows {
		if !idPattern.MatchString(r.id) {
			errs = append(errs, fmt.Errorf("line %d: %q is not an id", r.line+1, r.id))
		}
		if seen[r.id] {
			errs = append(errs, fmt.Errorf("line %d: id %s a second time", r.line+1, r.id))
		}
		seen[r.id] = true
		if !known[r.owner] {
			errs = append(errs, fmt.Errorf("line %d: owner %q is not in the table of parts", r.line+1, r.owner))
		}
		if r.status != statusOpen && r.status != statusTested {
			errs = append(errs, fmt.Errorf("line %d: status %q, want %s or %s", r.line+1, r.status, statusOpen, statusTested))
		}
	}
	if len(p.rows) == 0 {
		errs = append(errs, errors.New("no rows"))
	}
	return errors.Join(errs...)
}

// write sets every row's status by whether a test names it, and saves the page when that changes it.
func (p *page) write(path string, named map[string][]string) error {
	changed := false
	for i := range p.rows {
		r := &p.rows[i]
		status := statusOpen
		if len(named[r.id]) > 0 {
			status = statusTested
		}
		if r.status == status {
			continue
		}
		line := p.lines[r.line]
		end := strings.LastIndex(line, r.status)
		p.lines[r.line] = line[:end] + status + line[end+len(r.status):]
		r.status, changed = status, true
	}
	if !changed {
		return nil
	}
	return os.WriteFile(path, []byte(strings.Join(p.lines, "\n")), 0o644)
}

// cellsOf returns the trimmed cells of a table row, and nil for any other line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if len(line) < 2 || line[0] != '|' || line[len(line)-1] != '|' {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}
