# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python3 -m tessera.debug hang DIR`."""

import argparse
import sys

from tessera.debug.hang import DumpError, compare, read_dumps


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="tessera debug", description="Analyze the dumps of a job that failed.", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    hang = commands.add_parser("hang", help="find the rank that is behind or makes a different call, with call and source line", allow_abbrev=False)
    hang.add_argument("folder", metavar="DIR", help="folder of the ranks' rank-*.json (--dump-dir, TESSERA_DUMP_DIR)")
    given = parser.parse_args(arguments)
    try:
        jobs = read_dumps(given.folder)
        for number, dumps in jobs.items():
            if len(jobs) > 1:
                print(f"job {number} of the processes:")
            for line in compare(dumps):
                print(line)
    except DumpError as error:
        print(f"tessera: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
