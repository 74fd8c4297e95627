// The maximum of a window of 2 x 2 and its index are two reductions of the same elements: each
// element is read once, with 128-bit accesses.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels=print-ptx --tessera-check-gpu-kernels -o /dev/null | FileCheck %s

// CHECK: pool: launches 1, workspace 0, bytes 393216 of 393216
// CHECK-NEXT: plain: grid 16, block 256, shared 0, reads 262144, writes 131072
// CHECK-COUNT-4: ld.global{{(.nc)?}}.v4.b32
// CHECK-NOT: ld.global
// CHECK: pool: plain equal
#in = affine_map<(n, y, dy, x, dx, c) -> (n, y, dy, x, dx, c)>
#out = affine_map<(n, y, dy, x, dx, c) -> (n, y, x, c)>
func.func private @pool(%x: tensor<8x8x2x8x2x32xf32>, %y: tensor<8x8x8x32xf32>, %at: tensor<8x8x8x32xi32>) -> (tensor<8x8x8x32xf32>, tensor<8x8x8x32xi32>) attributes {kernel.reads = 1 : i64} {
  %least = arith.constant 0xFF800000 : f32
  %none = arith.constant 4 : i32
  %two = arith.constant 2 : i32
  %low = linalg.fill ins(%least : f32) outs(%y : tensor<8x8x8x32xf32>) -> tensor<8x8x8x32xf32>
  %nowhere = linalg.fill ins(%none : i32) outs(%at : tensor<8x8x8x32xi32>) -> tensor<8x8x8x32xi32>
  %max = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
      ins(%x : tensor<8x8x2x8x2x32xf32>) outs(%low : tensor<8x8x8x32xf32>) {
  ^bb0(%v: f32, %m: f32):
    %r = arith.maximumf %m, %v : f32
    linalg.yield %r : f32
  } -> tensor<8x8x8x32xf32>
  %first = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "parallel", "reduction", "parallel", "reduction", "parallel"]}
      ins(%x, %max : tensor<8x8x2x8x2x32xf32>, tensor<8x8x8x32xf32>) outs(%nowhere : tensor<8x8x8x32xi32>) {
  ^bb0(%v: f32, %m: f32, %p: i32):
    %is = arith.cmpf oeq, %v, %m : f32
    %dy = linalg.index 2 : index
    %dx = linalg.index 4 : index
    %i = arith.index_cast %dy : index to i32
    %j = arith.index_cast %dx : index to i32
    %i2 = arith.muli %i, %two : i32
    %place = arith.addi %i2, %j : i32
    %here = arith.select %is, %place, %none : i32
    %r = arith.minsi %p, %here : i32
    linalg.yield %r : i32
  } -> tensor<8x8x8x32xi32>
  return %max, %first : tensor<8x8x8x32xf32>, tensor<8x8x8x32xi32>
}
