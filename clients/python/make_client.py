# SPDX-License-Identifier: Apache-2.0
"""Writes into the client what belay's own tables say: the arguments of submit, estimate and update,
with their types and descriptions, and the docstrings of methods that are one call.

    make_client.py PRINT_ATTRIBUTES PRINT_OPENAPI TEMPLATE >client.py

A line @SCHEMA@ of the template is replaced with the arguments that are the members of that schema
of the API's description, and a line @SCHEMA: help@ with a description of each. Type and description
are those of the table of options (job/attributes.c) where it has them, else those of the schema. A
method without a docstring gets the summary of the operation of its name.
"""

import json
import re
import subprocess
import sys
import textwrap

COLUMNS = 100
SCALARS = {"integer": "int", "boolean": "bool", "string": "str"}
# The table's types and Python's; members of all other types have theirs in the schema.
OF_TYPE = {"bool": "bool", "true": "bool", "false": "bool", "integer": "int", "duration": "int"}
OF_TYPE.update({"moment": "int", "money": "int", "text": "str", "name": "str", "url": "str"})
MARK = re.compile(r"^( *)@(\w+)(: help)?@\n", re.M)
# The head of a method that has no docstring.
BARE = re.compile(r'^    def (\w+)\((?:.*\n(?: {8}.*\n)*    )?.*\) -> .*:\n(?! {8}""")', re.M)


def literal(words):
    return "Literal[%s]" % ", ".join('"%s"' % word for word in words)


def type_of(schema):
    kind = schema["type"]
    kind = next(k for k in kind if k != "null") if isinstance(kind, list) else kind
    if "enum" in schema:
        return literal(word for word in schema["enum"] if word is not None)
    if kind == "array":
        return "Sequence[%s]" % type_of(schema["items"])
    if kind == "object":
        values = schema.get("additionalProperties")
        return "Mapping[str, %s]" % (type_of(values) if isinstance(values, dict) else "Any")
    return SCALARS[kind]


class Options:
    def __init__(self, table, schemas):
        self.table, self.schemas = table, schemas
        self.order = {}
        for row in table:
            self.order.setdefault(row.get("name"), len(self.order))

    def rows(self, member):
        """Returns the table's rows for this member, aliases last."""
        found = [row for row in self.table if row.get("name") == member]
        return sorted(found, key=lambda row: "alias" in row["masks"])

    def type(self, member, schema):
        for row in self.rows(member):
            if row["words"]:
                return literal(row["words"])
            if row["type"] in OF_TYPE:
                return OF_TYPE[row["type"]]
        return type_of(schema)

    def help(self, member, schema):
        for row in self.rows(member):
            text = row.get("api_help") or row.get("help", row.get("key_help"))
            if text and not row.get("alias_of"):
                return text
        if "description" not in schema:
            raise SystemExit(f"make_client.py: neither the table nor the API says what {member} is")
        return schema["description"]

    def members(self, name):
        """Yields (name, schema, is required): required members first, then the others in the
        order of the table; members that the table lacks come last."""
        schema, last = self.schemas[name], len(self.order)
        needed, properties = schema.get("required", []), schema["properties"]
        for member in needed + sorted(
            (member for member in properties if member not in needed),
            key=lambda member: self.order.get(member, last),
        ):
            yield member, properties[member], member in needed

    def arguments(self, name, indent):
        for member, schema, is_needed in self.members(name):
            wanted = self.type(member, schema)
            yield f"{indent}{member}: {wanted}{'' if is_needed else ' | None = None'},"

    def descriptions(self, name, indent):
        for member, schema, _ in self.members(name):
            yield textwrap.fill(
                f"{member}: {self.help(member, schema)}",
                COLUMNS,
                initial_indent=indent,
                subsequent_indent=indent + "    ",
                break_long_words=False,
                break_on_hyphens=False,
            )

    def filled(self, template):
        def replace(found):
            lines = (self.descriptions if found[3] else self.arguments)(found[2], found[1])
            return "\n".join(lines) + "\n"

        return MARK.sub(replace, template)


def described(text, document):
    """text with the summary of its operation in each method that has no docstring."""
    summaries = {
        operation["operationId"]: operation["summary"]
        for operations in document["paths"].values()
        for operation in operations.values()
    }

    def add(found):
        summary = summaries.get(found[1])
        if not summary:
            return found[0]
        indent = " " * 8
        said = '"""%s%s."""' % (summary[0].upper(), summary[1:])
        return found[0] + textwrap.indent(textwrap.fill(said, COLUMNS - 8), indent) + "\n"

    return BARE.sub(add, text)


def main(print_attributes, print_openapi, template):
    table = json.loads(subprocess.check_output([print_attributes]))
    document = json.loads(subprocess.check_output([print_openapi]))
    with open(template, encoding="utf-8") as f:
        text = Options(table, document["components"]["schemas"]).filled(f.read())
    text = described(text, document)
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
