# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the lists of Inductor's launches are whole: inductor_lists.py FOLDER."""

import json
import pathlib
import sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    data = json.loads(path.read_text())
    batch, tokens, width, _, words = data["sizes"]
    weights = 12 * data["layers"] * width ** 2 + width * words
    parts, found, forward, backward = {}, 0, 0, 0
    for times, name, _, flops in data["launches"]:
        parts.setdefault(name.split(":")[0])
        forward += times * name.endswith("attention.default")
        backward += times * name.endswith("attention_backward.default")
        found += 0 if "attention" in name else times * flops
    print(f"{data['kind']}: products {found} of {6 * batch * tokens * weights} flops, attentions {forward} + {backward}, parts {', '.join(parts)}")
