// A branch in the body of an op yields a scalar of its thread. As a tensor, which a step would be, it would have one place
// in memory for all threads of a launch: seen on an H200 as the quotients of other threads.
// RUN: tessera-opt %s --tessera-pipeline --codegen=gpu=true | FileCheck %s --check-prefix=SCALAR
// RUN: tessera-opt %s --tessera-pipeline --codegen=gpu=true --tessera-compile-gpu-kernels=arch=compute_80 -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline --codegen=gpu=true --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL

// SCALAR-LABEL: func.func private @k0
// SCALAR: scf.if {{.*}} -> (i32)
// CHECK: launches 1, workspace 0, bytes 72 of 72
// EQUAL: loops equal
func.func @main(%x: tensor<9xi32> {dist.range = [-4, 5]}) -> tensor<9xi32> {
  %c0 = arith.constant 0 : i32
  %c12 = arith.constant 12 : i32
  %e = tensor.empty() : tensor<9xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<9xi32>) outs(%e : tensor<9xi32>) {
  ^bb0(%in: i32, %out: i32):
    %divides = arith.cmpi ne, %in, %c0 : i32
    %quotient = scf.if %divides -> (i32) {
      %q = arith.divsi %c12, %in : i32
      scf.yield %q : i32
    } else {
      scf.yield %c0 : i32
    }
    linalg.yield %quotient : i32
  } -> tensor<9xi32>
  return %y : tensor<9xi32>
}
