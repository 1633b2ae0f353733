#!/usr/bin/env python3
"""Holds every copy of the table of a policy's keys against the table itself, in both directions.

usage: keys_check.py AGENTBOX SOURCE_DIR

The table is what `agentbox dump keys` prints. The copies are policies/schema/policy.json and
man/agentbox-policy.5.scd. Each example in the manual must be a valid policy for `agentbox check`,
and so must the shipped policies, for the schema too.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

LONE = 77  # what meson takes for "skipped"


class Key:
    def __init__(self, line):
        self.path, self.type, self.default, self.merge, self.help = line.split("\t")
        self.base, _, words = self.type.partition(": ")
        self.words = words.split("|") if words else None


class Checker:
    def __init__(self, agentbox, source):
        self.agentbox, self.source, self.failures = agentbox, source, 0
        text = subprocess.run([agentbox, "dump", "keys"], capture_output=True, text=True, check=True,
                              timeout=60).stdout
        self.keys = {key.path: key for key in map(Key, text.splitlines())}

    def fail(self, text):
        print(text, file=sys.stderr)
        self.failures += 1

    def same(self, place, found, wanted):
        for path in sorted(wanted - found):
            self.fail(f"{place}: {path} is missing")
        for path in sorted(found - wanted):
            self.fail(f"{place}: {path} is not in the table")

    # schema

    def walk(self, path, node, found):
        if path:
            found[path] = node
        for part in [node] + node.get("anyOf", []):
            for name, child in part.get("properties", {}).items():
                self.walk(f"{path}.{name}" if path else name, child, found)
            for child in part.get("patternProperties", {}).values():
                self.walk(f"{path}.*", child, found)
            if "items" in part:
                self.walk(f"{path}[]", part["items"], found)
            if part.get("type") == "object" and part.get("additionalProperties") is not False:
                self.fail(f"schema: {path or 'the top'} lets unknown keys pass")

    def check_schema(self):
        schema = json.loads((self.source / "policies/schema/policy.json").read_text())
        found = {}
        self.walk("", schema, found)
        self.same("schema", set(found), set(self.keys))
        for path in sorted(set(found) & set(self.keys)):
            self.check_node(self.keys[path], found[path])
        return schema

    def check_node(self, key, node):
        if node.get("description", "").split(". From ")[0].rstrip(".") != key.help:
            self.fail(f"schema: {key.path}: its description is not the table's")
        default = node.get("default")
        text = {True: "true", False: "false"}.get(default, None) if isinstance(default, bool) else (
            "-" if default is None else json.dumps(default) if isinstance(default, (list, dict)) else
            str(default))
        if key.default not in ("required", "the file's name") and text != key.default:
            self.fail(f"schema: {key.path}: default {text}, not {key.default}")
        words = node.get("enum") or next((p["enum"] for p in node.get("anyOf", []) if "enum" in p), None)
        if words is not None and [word for word in words if word is not None] != key.words:
            self.fail(f"schema: {key.path}: words {words}, not {key.words}")
        if (words is None) != (key.words is None):
            self.fail(f"schema: {key.path}: words stand in one of table and schema only")
        if key.base.startswith(("integer", "number")):
            low, high = (float(part) for part in key.base.split()[1].split(".."))
            have = (node.get("minimum", node.get("const")), node.get("maximum", node.get("const")))
            if have != (low, high):
                self.fail(f"schema: {key.path}: from {have[0]} to {have[1]}, not {low} to {high}")
        kinds = {"map": "object", "map of names": "object", "list": "array", "boolean": "boolean"}
        if node.get("type") != kinds.get(key.base, node.get("type")):
            self.fail(f"schema: {key.path}: type {node.get('type')}")

    # manual

    def check_manual(self):
        text = (self.source / "man/agentbox-policy.5.scd").read_text().split("\n# KEYS\n")[1]
        text = text.split("\n# FILES\n")[0]
        entries = {}
        for name, body in re.findall(r"^\*([^\s*]+)\*\n((?:\t.*\n|\n(?=\t))+)", text, re.M):
            path = ".".join("*" if part == "NAME" else part for part in name.replace("\\", "").split("."))
            if path in entries:
                self.fail(f"manual: {path} stands there twice")
            entries[path] = body
        self.same("manual", set(entries), set(self.keys))
        for path, body in entries.items():
            key = self.keys.get(path)
            if not key:
                continue
            wanted = f"Type: {key.type}. Default: {key.default}. Merge: {key.merge}."
            first = body.split("\n")[0].strip().replace("\\", "")
            if first != wanted:
                self.fail(f"manual: {path}: says '{first}', not '{wanted}'")
            self.check_example(path, body)

    def check_example(self, path, body):
        examples = re.findall(r"\t```\n(.*?)\t```\n", body, re.S)
        if len(examples) != 1:
            self.fail(f"manual: {path}: {len(examples)} examples")
            return
        text = re.sub(r"\\(.)", r"\1", re.sub(r"^\t", "", examples[0], flags=re.M))
        last = re.split(r"\.(?!\*)|\[\]", path.replace(".*", ""))
        for word in (part for part in last if part):
            if not re.search(rf"\b{word}\b", text):
                self.fail(f"manual: {path}: the example does not use {word}")
        if not text.startswith(("version:", "extends:")):
            text = "extends: [default]\n" + text
        if not text.startswith("version:"):
            text = "version: 1\n" + text
        (self.scratch / "example.yaml").write_text(text)
        self.check_policy(f"manual: {path}: ", self.scratch / "example.yaml")

    def check_policy(self, place, file):
        done = subprocess.run([self.agentbox, "check", str(file)], capture_output=True, text=True,
                              env=dict(os.environ, XDG_CONFIG_HOME=str(self.scratch / "config")),
                              timeout=60)
        if done.returncode != 0:
            self.fail(f"{place}{done.stdout}{done.stderr}")

    # shipped policies

    def check_shipped(self, schema):
        try:
            import jsonschema
            import yaml
        except ImportError:
            print("without jsonschema and yaml of Python: policies are not held against the schema")
            return False
        validator = jsonschema.Draft202012Validator(schema)
        validator.check_schema(schema)
        files = sorted((self.source / "policies").glob("*.yaml"))
        for file in files + [self.source / "tests/fuzz/corpus/policy/full.yaml"]:
            document = yaml.safe_load(file.read_text())
            for error in validator.iter_errors(document):
                self.fail(f"{file.name}: {error.json_path}: {error.message}")
            self.check_policy("", file)
        for bad in ({"version": 1, "netwrok": "none"}, {"version": 2}, {"name": "x"},
                    {"version": 1, "limits": {"wall": "60"}}, {"version": 1, "limits": {"pids": 0}},
                    {"version": 1, "filesystem": {"read": "/opt"}}):
            if validator.is_valid(bad):
                self.fail(f"schema: takes {bad}")
        return True

    def check(self):
        with tempfile.TemporaryDirectory() as scratch:
            self.scratch = Path(scratch)
            config = self.scratch / "config/agentbox/policies"
            config.mkdir(parents=True)
            for file in (self.source / "policies").glob("*.yaml"):
                (config / file.name).write_text(file.read_text())
            (self.scratch / "team.yaml").write_text("version: 1\n")
            schema = self.check_schema()
            self.check_manual()
            complete = self.check_shipped(schema)
        print(f"{len(self.keys)} keys, {self.failures} failures")
        return 1 if self.failures else 0 if complete else LONE


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(Checker(sys.argv[1], Path(sys.argv[2])).check())
