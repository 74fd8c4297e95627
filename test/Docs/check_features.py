"""check_features.py DOCUMENT FOLDER: the document has the 77 rows in their order, what they link to is there, and each file of the folder
that is named by a row is of one that the document has."""

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
