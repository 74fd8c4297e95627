// An index that is provably in bounds is not clamped.
// RUN: tessera-opt %s --tessera-compile-kernels=print-loops -o /dev/null | FileCheck %s

// CHECK-LABEL: inside:
// CHECK-NOT: arith.m{{(ax|in)}}si
// CHECK-LABEL: unknown:
// CHECK: arith.maxsi
// CHECK: arith.minsi
func.func private @inside(%t: tensor<8xf32>, %o: tensor<5xf32>) -> tensor<5xf32> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%o : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %c3 = arith.constant 3 : index
    %j = arith.addi %i, %c3 : index
    %x = tensor.extract %t[%j] : tensor<8xf32>
    linalg.yield %x : f32
  } -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
func.func private @unknown(%t: tensor<8xf32>, %n: tensor<5xindex>, %o: tensor<5xf32>) -> tensor<5xf32> attributes {kernel.reads = 2 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    ins(%n : tensor<5xindex>) outs(%o : tensor<5xf32>) {
  ^bb0(%i: index, %out: f32):
    %x = tensor.extract %t[%i] : tensor<8xf32>
    linalg.yield %x : f32
  } -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
