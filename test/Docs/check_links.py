#!/usr/bin/env python3
"""Checks the links of the documents.

    check_links.py SOURCE

A link to a file of the repository must name one that exists, and a link to a section one of its headings. Links inside
of fenced blocks are text. Prints one line per broken link, and fails.
"""

import re
import sys
from pathlib import Path

FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
NAMED = re.compile(r'<a id="([^"]+)">')
OTHER_FOLDERS = ("build", "node_modules")


def prose(path):
    """The text of a document, with the lines of its fenced blocks left empty."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), path.read_text())


def anchor(heading):
    """The name by which GitHub links to a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def anchors_of(path):
    text = prose(path)
    found, counts = set(NAMED.findall(text)), {}
    for name in map(anchor, HEADING.findall(text)):
        found.add(f"{name}-{counts[name]}" if name in counts else name)
        counts[name] = counts.get(name, 0) + 1
    return found


def broken_links(path):
    for number, line in enumerate(prose(path).splitlines(), 1):
        for link in LINK.findall(line):
            if "://" in link or link.startswith("mailto:"):
                continue
            name, _, section = link.partition("#")
            target = path.parent / name if name else path
            if not target.exists():
                yield number, f"there is no {name}"
            elif section and target.suffix == ".md" and section not in anchors_of(target):
                yield number, f"{target.name} has no section '{section}'"


def main():
    source = Path(sys.argv[1]).resolve()
    documents = sorted(path for path in source.rglob("*.md")
                       if not path.relative_to(source).parts[0].startswith((".", *OTHER_FOLDERS)))
    broken = [f"{path.relative_to(source)}:{number}: {what}" for path in documents for number, what in broken_links(path)]
    print("\n".join(broken) if broken else f"{len(documents)} documents, no broken link")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
