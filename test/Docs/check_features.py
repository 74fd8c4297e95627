"""check_features.py DOCUMENT FOLDER: the document has the 77 rows in order, the targets of their links exist, each file of the folder
that is named after a row belongs to a row of the document, and the tests of each row run its command: their text, with that of the
scripts that they name, contains its functions, options and subcommands."""

import os
import re
import sys

document, folder = sys.argv[1:]
with open(document, encoding="utf-8") as file:
    text = file.read()
rows = re.findall(r"^\| (D\d-\d+) \|(.*)\|$", text, re.M)
counts = [(0, 19), (1, 12), (2, 15), (3, 14), (4, 17)]
wanted = [f"D{part}-{number}" for part, count in counts for number in range(1, count + 1)]
assert [name for name, _ in rows] == wanted, sorted(set(wanted) ^ {name for name, _ in rows})
links = dict(re.findall(r"^\[(d\d-\d+[a-z]?)\]: (\S+)$", text, re.M))
for name, path in links.items():
    assert os.path.exists(os.path.join(os.path.dirname(document), path)), f"[{name}] leads to {path}, which is not there"
for name, rest in rows:
    for link in re.findall(r"\[(d\d-\d+[a-z]?)\]", rest):
        assert link in links and link.rstrip("abcdef") == name.lower(), f"row {name} has the link [{link}]"
        assert os.path.basename(links[link]).startswith(name.lower() + "-"), f"row {name} leads to {links[link]}"
for name in sorted(os.listdir(folder)):
    if match := re.match(r"(d\d-\d+)-", name):
        assert match[1].upper() in wanted, f"{name} is of no row"


def read(path, seen):
    """A test with the scripts that it names."""
    if path in seen or not os.path.isfile(path):
        return ""
    seen.add(path)
    with open(path, encoding="utf-8") as file:
        said = file.read()
    root = os.path.join(folder, "..", "..")
    places = {"%S": os.path.dirname(path), "%source": root, "%examples": os.path.join(root, "examples")}
    named = [os.path.join(places[place], rest) for place, rest in re.findall(r"(%S|%source|%examples)/([\w./-]+)", said)]
    named += [os.path.join(os.path.dirname(path), f"{module}.py") for module in re.findall(r"^(?:from|import) (\w+)", said, re.M)]
    return said + "".join(read(each, seen) for each in named)


def words(command):
    """The words that a test of the command must contain: functions, options, subcommands."""
    if command.startswith(("tessera ", "python3 ", "mpirun ")) or " tessera " in command:
        parts = command.split()
        modules = re.findall(r"tessera\.(\w+)", command) + ([parts[parts.index("tessera") + 1]] if "tessera" in parts else [])
        verbs = [part for before, part in zip(parts, parts[1:]) if before in ("topo", "bench", "tessera.kvstore")]
        scripts = [part for part in parts if part.endswith((".py", ".mlir"))]
        return [*modules, *verbs, *scripts, *[re.match(r"-+([\w-]+)", part)[1] for part in parts if part.startswith("-")]]
    return [function or option for function, option in re.findall(r"(\w+)(?=\()|(?<=[(, ])(\w+)(?==)", command)]


for name, rest in rows:
    example = rest.split("|")[1]
    commands = re.findall(r"`([^`]+)`", example)
    assert commands, f"row {name} has no command"
    said, seen = "", set()
    for link in re.findall(r"\[(d\d-\d+[a-z]?)\]", rest):
        said += read(os.path.join(os.path.dirname(document), links[link]), seen)
    for command in commands:
        for word in words(command):
            assert re.search(rf"(?<![A-Za-z]){re.escape(word)}", said), f"row {name}: no test runs '{command}': '{word}' is in none of {sorted(seen)}"
