#!/usr/bin/env python3
"""Runs the commands of a document, and compares their output with the document.

    run_blocks.py DOCUMENT --examples DIR [--work DIR]

The info string of a fenced block defines its kind:

    ```mlir file=NAME   written to NAME in the work directory; python likewise
    ```sh run           run there by bash; every command must succeed
    ```sh fails         the same; the last command must exit with 1
    ```text output      the output of the block before, standard output and error together:
                        these words in this order, ignoring white space; `...` matches anything
    ```json output      the same

All blocks of a document share one directory, in which `examples` leads to the repository's.
Other blocks are only shown. Lines of a document are at most 120 columns wide, and files that it
links to exist.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

WIDTH = 120
TIMEOUT = 300  # seconds until a block counts as hanging


def fail(document, line, message):
    sys.exit(f"{document}:{line}: error: {message}")


def blocks(document):
    """(line, info, text) of every fenced block."""
    info, begin, lines = None, 0, []
    for number, line in enumerate(open(document, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if len(line) > WIDTH:
            fail(document, number, f"{len(line)} columns, at most {WIDTH}")
        if info is None:
            for link in re.findall(r"\]\(([^)#:]+)\)", line):
                if not os.path.exists(os.path.join(os.path.dirname(document), link)):
                    fail(document, number, f"there is no {link}")
            if line.startswith("```"):
                info, begin, lines = line[3:].strip(), number, []
        elif line == "```":
            yield begin, info, "\n".join(lines) + "\n"
            info = None
        else:
            lines.append(line)
    if info is not None:
        fail(document, begin, "the block does not end")


def matches(shown, printed):
    """Whether the output contains the parts between `...` in order."""
    printed = " ".join(printed.split())
    parts = [" ".join(part.split()) for part in shown.split("...")]
    return re.search(".*?".join(re.escape(part) for part in parts if part), printed)


def run(document, line, text, fails, work):
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=work, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    except subprocess.TimeoutExpired:
        fail(document, line, f"no end after {TIMEOUT} s")
    if done.returncode != (1 if fails else 0):
        fail(document, line, f"exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document")
    parser.add_argument("--examples", required=True, help="the repository's examples")
    parser.add_argument("--work", help="directory to work in (default: a temporary one)")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or temporary
        os.makedirs(work, exist_ok=True)
        link = os.path.join(work, "examples")
        if not os.path.lexists(link):
            os.symlink(os.path.abspath(options.examples), link)
        printed, ran = None, 0
        for line, info, text in blocks(options.document):
            if name := re.fullmatch(r"(?:mlir|python) file=([\w.-]+)", info):
                with open(os.path.join(work, name[1]), "w", encoding="utf-8") as file:
                    file.write(text)
            elif info in ("sh run", "sh fails"):
                printed = run(options.document, line, text, info == "sh fails", work)
                ran += 1
            elif info in ("text output", "json output"):
                if printed is None:
                    fail(options.document, line, "no block has run before")
                if not matches(text, printed):
                    fail(options.document, line, f"shown, but not printed; printed was\n{printed}")
        print(f"{options.document}: {ran} blocks run")


if __name__ == "__main__":
    main()
