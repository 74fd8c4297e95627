# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a chain of N layers h = tanh(h + x * w) with one weight and one input for all."""
import sys

print("func.func @main(%x: tensor<4xf64>, %w: tensor<4xf64>) -> tensor<4xf64> {")
h = "%x"
for i in range(int(sys.argv[1])):
    print(f"  %p{i} = arith.mulf %x, %w : tensor<4xf64>")
    print(f"  %s{i} = arith.addf {h}, %p{i} : tensor<4xf64>")
    print(f"  %h{i} = math.tanh %s{i} : tensor<4xf64>")
    h = f"%h{i}"
print(f"  return {h} : tensor<4xf64>\n}}")
