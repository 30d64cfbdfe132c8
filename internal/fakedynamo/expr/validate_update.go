package expr

import "slices"

// longNames are the names of types that messages about ADD and DELETE use.
var longNames = map[string]string{
	"S": "STRING", "N": "NUMBER", "B": "BINARY", "BOOL": "BOOLEAN", "NULL": "NULL",
	"M": "MAP", "L": "LIST", "SS": "STRING_SET", "NS": "NUMBER_SET", "BS": "BINARY_SET",
}

var setTypes = []string{"SS", "NS", "BS"}

// validate checks the targets against each other and the operands that are
// values.
func (u *Update) validate(env Env) error {
	if err := env.checkPaths(KindUpdate, u.paths); err != nil {
		return err
	}
	for _, a := range u.actions {
		switch a.section {
		case "SET":
			if err := a.operand.validate(env); err != nil {
				return err
			}
		case "ADD", "DELETE":
			t := TypeOf(env.Values[a.operand.value])
			if !slices.Contains(setTypes, t) && (a.section == "DELETE" || t != "N") {
				return KindUpdate.invalid("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%[1]s_OPERAND",
					a.section, longNames[t])
			}
		}
	}
	return nil
}

func (o *operand) validate(env Env) error {
	allowed := []string{"N"}
	switch o.op {
	case "":
		return nil
	case "if_not_exists":
		allowed = attributeTypes
	case "list_append":
		allowed = []string{"L"}
	}
	for _, arg := range o.args {
		if err := arg.validate(env); err != nil {
			return err
		}
	}
	return checkTypes(KindUpdate, env, o.op, o.args, allowed)
}
