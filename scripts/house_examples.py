"""The rules that every entry point of a published crate has an example, and that every option states its default: pure functions over
the sources of a crate.

An entry point is what a user calls or creates: a public function, a public trait, and a public type with a constructor, an asynchronous method, or
setters. Public means `pub`, because a lint refuses `pub` items that cannot be reached. An example is a code block in the item's own documentation or in
that of one of its methods, or a sentence such as "[`Other`] has an example".
"""

import re
from dataclasses import dataclass, field

ITEM = re.compile(r"^pub (?:const |async )*(struct|enum|trait|fn) (\w+)")
IMPL = re.compile(r"^impl(?:<[^{]*?>)? (?:([\w:]+)(?:<[^{]*>)? for )?(\w+)")
METHOD = re.compile(r"^    (pub )?((?:const |async )*)fn (\w+)")
POINTER = re.compile(r"\[`?[\w:]+!?`?\](?:\([^)]*\))? (?:has|is|shows) an example|is an example\.")

# Entry points without an example -> why. The list may only become shorter.
WITHOUT_EXAMPLE = {
    "emulators/src/cloud/mod.rs Cloud": "a bound of `Emulator`; only the clouds of that crate implement it",
    "emulators/src/cloud/mod.rs CloudEngine": "a bound of `Cloud`; only the clouds of that crate implement it",
    "emulators/src/cloud/mod.rs CommonKnobs": "a bound of `Cloud`; only the clouds of that crate implement it",
    "emulators/src/cloud/mod.rs Operation": "a bound of `Cloud`; only the clouds of that crate implement it",
    "emulators/src/cloud/mod.rs RefusalInfo": "a bound of `Cloud`; only the clouds of that crate implement it",
    "emulators/src/azure/error.rs Refusal": "an error that callers only read",
    "facade/compute/src/controller/decide.rs decide": "a pure step of the controller, public for its tests and for the simulation",
    "facade/compute/src/controller/project.rs Obstacle": "an input of `project`",
    "facade/compute/src/controller/project.rs project": "a pure step of the controller, public for its tests and for the simulation",
    "facade/compute/src/controller/project.rs events_between": "a pure step of the controller, public for its tests and for the simulation",
    "facade/region/src/controller/decide.rs decide": "a pure step of the controller, public for its tests and for the simulation",
    "facade/region/src/controller/tags.rs applied": "a pure step of the controller, public for its tests and for the simulation",
    "facade/region/src/controller/tags.rs change": "a pure step of the controller, public for its tests and for the simulation",
    "facade/region/src/snapshot/decide.rs decide": "a pure step of the controller, public for its tests and for the simulation",
    "facade/region/src/snapshot/delete.rs ImageDeleter": "the program that builds the façade implements it with a vendor's SDK",
    "facade/region/src/snapshot/provenance.rs Provenance": "the system creates it, and tags show it",
}


OPTIONS = re.compile(r"^pub struct (\w*(?:Options|Policy|Knobs|Timing))\b[^{;]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
STATES_DEFAULT = re.compile(r"\b[Dd]efault\b|\bby default\b|\bRequired\b")


@dataclass
class Item:
    path: str
    kind: str
    name: str
    docs: str
    hidden: bool
    methods: list = field(default_factory=list)


@dataclass
class Method:
    docs: str
    signature: str
    is_async: bool


def entry_points_have_examples(sources, exceptions=None):
    """`sources`: the text of each source file of one crate by its path."""
    exceptions = WITHOUT_EXAMPLE if exceptions is None else exceptions
    problems = []
    for item in public_items(sources):
        name = f"{item.path} {item.name}"
        if item.hidden or not is_entry_point(item):
            continue
        if has_example(item) and name in exceptions:
            problems.append(f"{name}: has an example; remove it from WITHOUT_EXAMPLE of scripts/house_examples.py")
        elif not has_example(item) and name not in exceptions:
            problems.append(f"{name}: a {item.kind} that users call or create, without an example; "
                            "add a code block to its documentation")
    return problems


def exceptions_exist(sources, exceptions=None):
    """`sources`: the text of each source file of every published crate by its path."""
    exceptions = WITHOUT_EXAMPLE if exceptions is None else exceptions
    names = {f"{item.path} {item.name}" for item in public_items(sources)}
    return [f"{name}: does not exist; remove it from WITHOUT_EXAMPLE of scripts/house_examples.py"
            for name in sorted(exceptions) if name not in names]


def options_state_defaults(path, text):
    """Every public field of a struct of options says what it is if nothing sets it."""
    problems = []
    for struct, body in OPTIONS.findall(text):
        docs = []
        for line in map(str.strip, body.splitlines()):
            if line.startswith("///"):
                docs.append(line)
            elif line.startswith("pub ") and not STATES_DEFAULT.search("\n".join(docs)):
                name = line.removeprefix("pub ").partition(":")[0]
                problems.append(f"{path} {struct}::{name}: an option without a default; write `Default: ...` or `Required.`")
            if not line.startswith(("///", "#[")):
                docs = []
    return problems


def is_entry_point(item):
    if item.kind in ("trait", "fn"):
        return True
    return any(method.is_async or "self" not in parameters(method) or is_setter(method) for method in item.methods)


def is_setter(method):
    return re.search(r"\((?:mut )?self\b[^)]*\) -> Self\b", method.signature) is not None


def parameters(method):
    return method.signature.partition("->")[0]


def has_example(item):
    return any("```" in docs or POINTER.search(docs) for docs in [item.docs, *(method.docs for method in item.methods)])


def public_items(sources):
    items, methods = [], []
    for path, text in sorted(sources.items()):
        for owner, found in scan(path, text):
            if isinstance(found, Item):
                items.append(found)
            else:
                methods.append((path, owner, found))
    types = {(item.path, item.name): item for item in items if item.kind != "fn"}
    for path, owner, method in methods:
        # Two modules may have types of the same name. An `impl` in another file than its type is rare, and belongs to any of them.
        here = types.get((path, owner))
        for item in [here] if here else [item for item in types.values() if item.name == owner]:
            item.methods.append(method)
    return items


def scan(path, text):
    """Yields (None, Item) and (name of the type or trait, Method). Relies on rustfmt's layout: items begin at the first column."""
    lines = text.splitlines()
    docs, attributes, owner, is_trait = [], [], None, False
    number = 0
    while number < len(lines):
        line = lines[number]
        stripped = line.strip()
        if stripped == "#[cfg(test)]":
            number = end_of_item(lines, number + 1)
            docs, attributes = [], []
            continue
        if stripped.startswith("///"):
            docs.append(stripped[3:])
        elif stripped.startswith("#["):
            while not lines[number].rstrip().endswith("]") and number + 1 < len(lines):
                number += 1
            attributes.append(stripped)
        else:
            if found := ITEM.match(line):
                kind, name = found.groups()
                yield None, Item(path, kind, name, "\n".join(docs), any("doc(hidden)" in attribute for attribute in attributes))
                if kind == "trait":
                    owner, is_trait = name, True
            elif found := IMPL.match(line):
                of_trait, owner = found.groups()
                owner, is_trait = (None if of_trait else owner), False
            elif (found := METHOD.match(line)) and owner and (found.group(1) or is_trait):
                yield owner, Method("\n".join(docs), signature(lines, number), "async" in found.group(2))
            elif line == "}":
                owner = None
            if stripped:
                docs, attributes = [], []
        number += 1


def end_of_item(lines, number):
    """Returns the number of the line after the item that begins at `number`."""
    while number < len(lines) and lines[number].strip().startswith("#["):
        number += 1
    if number >= len(lines) or not lines[number].rstrip().endswith("{"):
        return number + 1
    indent = len(lines[number]) - len(lines[number].lstrip())
    while number < len(lines) and lines[number] != " " * indent + "}":
        number += 1
    return number + 1


def signature(lines, number):
    text = lines[number].strip()
    while not re.search(r"[{;]$", text) and number + 1 < len(lines):
        number += 1
        text += lines[number].strip()
    return text


RULES = [entry_points_have_examples, exceptions_exist, options_state_defaults]
