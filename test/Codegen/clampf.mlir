// math.clampf is min(upper bound, max(lower bound, x)); NaN is propagated. MLIR's expansion exchanges the two.
// RUN: tessera-opt %s --interpret -o /dev/null
// RUN: sed '/check[.]/d' %s > %t.mlir
// RUN: tessera run %t.mlir --check=interpreter | FileCheck %s
// RUN: tessera run %t.mlir --check=interpreter --backend stub | FileCheck %s

// CHECK: check  r  ok
// CHECK: check  h  ok
func.func @main() -> (tensor<9xf32> {dist.name = "r"}, tensor<9xbf16> {dist.name = "h"}) {
  %x = arith.constant dense<[-2.0, -0.5, -0.25, -0.0, 0.25, 0.5, 2.0, 0xFF800000, 0x7FC00000]> : tensor<9xf32>
  %lo = arith.constant dense<-0.5> : tensor<9xf32>
  %hi = arith.constant dense<0.5> : tensor<9xf32>
  %r = math.clampf %x to [%lo, %hi] : tensor<9xf32>
  %e = arith.constant dense<[-0.5, -0.5, -0.25, -0.0, 0.25, 0.5, 0.5, -0.5, 0x7FC00000]> : tensor<9xf32>
  check.expect_eq %r, %e : tensor<9xf32>
  %xh = arith.truncf %x : tensor<9xf32> to tensor<9xbf16>
  %loh = arith.truncf %lo : tensor<9xf32> to tensor<9xbf16>
  %hih = arith.truncf %hi : tensor<9xf32> to tensor<9xbf16>
  %h = math.clampf %xh to [%loh, %hih] : tensor<9xbf16>
  return %r, %h : tensor<9xf32>, tensor<9xbf16>
}
