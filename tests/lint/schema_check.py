"""Holds results against the schema that is shipped.

    schema_check.py policies/schema/result.json FILE...

Each line of the files is a result as some test saw it printed. Exit status 77: python3-jsonschema is missing.
"""
import json
import sys

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is missing")
    sys.exit(77)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema)
    checked, wrong, seen = 0, 0, set()
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8", errors="strict") as file:
            for line in file:
                if not line.strip():
                    continue
                checked += 1
                for error in validator.iter_errors(json.loads(line)):
                    wrong += 1
                    text = "%s: %s" % ("/".join(map(str, error.absolute_path)), error.message[:300])
                    if text not in seen and len(seen) < 20:
                        print(text)
                    seen.add(text)
    print("%d results, %d mistakes" % (checked, wrong))
    if checked == 0:
        print("there is nothing to check")
    sys.exit(1 if wrong or checked == 0 else 0)


main()
