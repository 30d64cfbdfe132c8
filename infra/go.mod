module github.com/lockstream/lockstream/infra

go 1.26.0

require github.com/lockstream/lockstream v0.0.0

replace github.com/lockstream/lockstream => ../
