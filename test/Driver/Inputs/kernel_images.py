"""kernel_images.py ARTIFACT PREFIX: writes the shared object of each CPU to PREFIX.CPU."""

import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    data = file.read()
sections = {}
for i in range(struct.unpack_from("<I", data, 12)[0]):
    name, offset, size, _ = struct.unpack_from("<16sQQQ", data, 32 + 40 * i)
    sections[name.rstrip(b"\0").decode()] = data[offset:offset + size]
for i, variant in enumerate(json.loads(sections["kernels"])):
    with open(f"{sys.argv[2]}.{variant['cpu']}", "wb") as file:
        file.write(sections[f"kernels.{i}"])
