package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// report is what check found.
type report struct {
	Rows, Named, Stale int
	Parts              []partReport
	Wrong              []string
}

type partReport struct {
	Part     string `json:"part"`
	Finished bool   `json:"finished"`
	Owed     int    `json:"owed"`
	Named    int    `json:"named"`
}

// check compares the page with the ids that tests name.
func check(p *page, named map[string][]string) *report {
	r := &report{Rows: len(p.rows)}
	known := map[string]bool{}
	parts := map[string]*partReport{}
	for _, part := range p.parts {
		parts[part] = &partReport{Part: part, Finished: p.finished[part]}
	}
	missing := map[string][]string{}
	for _, row := range p.rows {
		known[row.id] = true
		part := parts[row.owner]
		part.Owed++
		switch {
		case len(named[row.id]) > 0:
			part.Named++
			r.Named++
			if row.status == statusOpen {
				r.Stale++
			}
		case part.Finished:
			missing[row.owner] = append(missing[row.owner], row.id)
		case row.status == statusTested:
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s is %s on the page, and no test names it", row.id, statusTested))
		}
	}
	for _, part := range p.parts {
		r.Parts = append(r.Parts, *parts[part])
		if ids := missing[part]; len(ids) > 0 {
			r.Wrong = append(r.Wrong, fmt.Sprintf("no test names what the finished part %s owes: %s", part, strings.Join(ids, ", ")))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(named)) {
		if !known[id] {
			r.Wrong = append(r.Wrong, fmt.Sprintf("%s is named at %s and is not on the page", id, strings.Join(named[id], " and ")))
		}
	}
	return r
}
