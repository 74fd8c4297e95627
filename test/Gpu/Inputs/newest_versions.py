"""Whether a program needs libraries later than those given: newest_versions.py GLIBC=2.34 GLIBCXX=3.4.30 < version-info."""

import re
import sys


def numbers(text):
    return tuple(map(int, text.split(".")))


info = sys.stdin.read()
for argument in sys.argv[1:]:
    name, allowed = argument.split("=")
    found = {numbers(each) for each in re.findall(rf"\b{name}_([\d.]+\d)", info)}
    if not found:
        sys.exit(f"no versions of {name} were read")
    if max(found) > numbers(allowed):
        sys.exit(f"needs {name} {'.'.join(map(str, max(found)))}")
print("nothing newer than " + ", ".join(each.replace("=", " ") for each in sys.argv[1:]))
