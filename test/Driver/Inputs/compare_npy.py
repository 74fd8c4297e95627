"""compare_npy.py A B TOLERANCE: compares two files of f32, as far as the largest value times TOLERANCE."""

import array
import ast
import struct
import sys


def values(path):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:6] == b"\x93NUMPY" and data[6] == 1, path
    begin = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:begin].decode())
    assert header["descr"] == "<f4", header
    return header["shape"], array.array("f", data[begin:])


(shape, a), (other, b) = values(sys.argv[1]), values(sys.argv[2])
assert shape == other and len(a), (shape, other)
largest = max(map(abs, a))
error = max(abs(x - y) for x, y in zip(a, b))
assert largest > 0 and error <= float(sys.argv[3]) * largest, f"error {error}, largest {largest}"
print(f"{len(a)} equal")
