#!/usr/bin/env python3
"""Hold the table of the result's fields, its JSON Schema and its manual page to each other.

usage: result_check.py AGENTBOX SOURCE_DIR [REPORT_TEST]

AGENTBOX dump result prints the table. With REPORT_TEST, the results that it prints for --samples
are also held to the schema. Prints each difference; the exit status is 1 when there is one,
77 when python3-jsonschema is missing.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print("python3-jsonschema is missing")
    sys.exit(77)

FIELD = re.compile(
    r"^\*([a-z0-9_.\[\]]+)\* \((string|integer|number|boolean|object|array)( or null)?\)$"
)


def dumped(agentbox):
    lines = subprocess.run(
        [agentbox, "dump", "result"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    fields = {}
    for line in lines:
        path, kind, nullable, help_text, values = line.split("\t")
        fields[path] = (kind, nullable == "yes", help_text, tuple(values.split()))
    return fields


def in_schema(node, path, fields, faults):
    """Collect path -> (type, nullable, description, values) below a node of the schema."""
    kinds = node.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if path and not (path.endswith("[]") and "properties" in node):
        values = tuple(v for v in node.get("enum", []) if v is not None)
        if "enum" in node and (None in node["enum"]) != ("null" in kinds):
            faults.append(f"schema: {path}: enum and type disagree about null")
        fields[path] = (kinds[0], "null" in kinds, node.get("description"), values)
    if kinds[0] == "object":
        names = list(node.get("properties", {}))
        if node.get("additionalProperties") is not False:
            faults.append(f"schema: {path or 'the result'}: additionalProperties is not false")
        if node.get("required") != names:
            faults.append(f"schema: {path or 'the result'}: not every property is required")
        for name, child in node.get("properties", {}).items():
            in_schema(child, f"{path}.{name}" if path else name, fields, faults)
    if kinds[0] == "array":
        if "items" not in node:
            faults.append(f"schema: {path}: no items")
        else:
            in_schema(node["items"], path + "[]", fields, faults)


def in_manual(text):
    """Path -> (type, nullable, description) from the entries "*path* (type or null)"."""
    fields = {}
    lines = text.splitlines()
    for at, line in enumerate(lines):
        match = FIELD.match(line)
        if not match:
            continue
        body = []
        for below in lines[at + 1:]:
            if below and not below.startswith("\t"):
                break
            body.append(below.strip())
        words = " ".join(" ".join(body).split())
        fields[match[1]] = (match[2], match[3] is not None, plain(words))
    return fields


def plain(text):
    """The words of scdoc source without its marks."""
    text = re.sub(r"(?<![\w\\])_|_(?!\w)", "", text.replace("*", ""))
    return re.sub(r"\\(.)", r"\1", text)


def compare(table, other, where, faults):
    for path in table:
        if path not in other:
            faults.append(f"{where}: {path} is missing")
    for path, facts in other.items():
        if path not in table:
            faults.append(f"{where}: {path} is not in the table")
        elif list(facts[:2]) != list(table[path][:2]):
            faults.append(f"{where}: {path} is {facts[:2]}, in the table {table[path][:2]}")
    common = [path for path in table if path in other]
    if common != [path for path in other if path in table]:
        faults.append(f"{where}: the fields are in another order than in the table")


def main():
    agentbox, source = sys.argv[1], Path(sys.argv[2])
    faults = []
    table = dumped(agentbox)
    if not table:
        faults.append("the table is empty")

    schema = json.loads((source / "policies/schema/result.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    fields = {}
    in_schema(schema, "", fields, faults)
    compare(table, fields, "schema", faults)
    for path, (_, _, description, values) in fields.items():
        if path in table and description != table[path][2]:
            faults.append(f"schema: {path}: the description is not the table's")
        if path in table and values != table[path][3]:
            faults.append(f"schema: {path}: values {values}, in the table {table[path][3]}")

    fields = in_manual((source / "man/agentbox-result.5.scd").read_text())
    compare(table, fields, "manual", faults)
    for path, (_, _, words) in fields.items():
        if path not in table:
            continue
        if not words.startswith(table[path][2]):
            faults.append(f"manual: {path}: does not begin with the table's words")
        if "Example:" not in words:
            faults.append(f"manual: {path}: has no example")
        for value in table[path][3]:
            if not re.search(rf"\b{re.escape(value)}\b", words):
                faults.append(f"manual: {path}: does not tell of {value}")

    count = 0
    if len(sys.argv) > 3:
        lines = subprocess.run(
            [sys.argv[3], "--samples"], check=True, capture_output=True
        ).stdout.decode("utf-8", errors="strict").splitlines()
        validator = jsonschema.Draft202012Validator(schema)
        for count, line in enumerate(lines, 1):
            for error in validator.iter_errors(json.loads(line)):
                place = ".".join(str(part) for part in error.absolute_path)
                faults.append(f"sample {count}: {place}: {error.message[:200]}")
        if count == 0:
            faults.append("there are no samples")

    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(table)} fields, {count} samples: table, schema and manual agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
