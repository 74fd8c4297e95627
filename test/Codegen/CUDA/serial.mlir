// Kernels with many iterations per thread are reported, and rejected beyond 10^8 iterations.
// RUN: split-file %s %t
// RUN: tessera-opt %t/many.mlir --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null 2>&1 | FileCheck %t/many.mlir
// RUN: not tessera-opt %t/most.mlir --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null 2>&1 | FileCheck %t/most.mlir
// RUN: tessera-opt %t/few.mlir --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null 2>&1 | FileCheck %t/few.mlir

//--- many.mlir
// Of equal indices the last one is written, so elements are written in order.
// CHECK: many.mlir:5:1: warning: one GPU thread runs 2000000 iterations of this kernel serially (a loop of 'scf.for')
// CHECK: elements: launches
// CHECK: loops: grid 1, block 32
func.func private @elements(%s: tensor<2000000xf32>, %i: tensor<2000000x1xindex>, %d: tensor<5xf32>, %o: tensor<5xf32>)
    -> tensor<5xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<2000000xf32>, tensor<5xf32>, tensor<2000000x1xindex>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

//--- most.mlir
// CHECK: most.mlir:2:1: error: one GPU thread runs 200000000 iterations of this kernel serially (a loop of 'scf.for'); the limit is 100000000
func.func private @elements(%s: tensor<200000000xf32>, %i: tensor<200000000x1xindex>, %d: tensor<5xf32>, %o: tensor<5xf32>)
    -> tensor<5xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<200000000xf32>, tensor<5xf32>, tensor<200000000x1xindex>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

//--- few.mlir
// Each thread visits the rows of a column.
// CHECK-NOT: warning
// CHECK: rows: launches
func.func private @rows(%s: tensor<30000x768xf32>, %i: tensor<30000x1xindex>, %d: tensor<50x768xf32>, %o: tensor<50x768xf32>)
    -> tensor<50x768xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<30000x768xf32>, tensor<50x768xf32>, tensor<30000x1xindex>) -> tensor<50x768xf32>
  return %0 : tensor<50x768xf32>
}
