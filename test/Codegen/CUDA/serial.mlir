// Kernels with many iterations per thread are reported, and rejected beyond 10^8 iterations.
// RUN: split-file %s %t
// RUN: tessera-opt %t/many.mlir --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null 2>&1 | FileCheck %t/many.mlir
// RUN: not tessera-opt %t/most.mlir --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null 2>&1 | FileCheck %t/most.mlir
// RUN: tessera-opt %t/few.mlir --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null 2>&1 | FileCheck %t/few.mlir

//--- many.mlir
// Of equal indices the last one is written, so elements are written in order: each of five blocks writes one element.
// CHECK: many.mlir:5:1: warning: one GPU thread runs 4078125 iterations of this kernel serially
// CHECK: elements: launches
// CHECK: scatter: grid 5, block 256
func.func private @elements(%s: tensor<20000000xf32>, %i: tensor<20000000x1xindex>, %d: tensor<5xf32>, %o: tensor<5xf32>)
    -> tensor<5xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<20000000xf32>, tensor<5xf32>, tensor<20000000x1xindex>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

//--- most.mlir
// CHECK: most.mlir:2:1: error: one GPU thread runs 122343750 iterations of this kernel serially; the limit is 100000000
func.func private @elements(%s: tensor<600000000xf32>, %i: tensor<600000000x1xindex>, %d: tensor<5xf32>, %o: tensor<5xf32>)
    -> tensor<5xf32> attributes {kernel.reads = 3 : i64} {
  %0 = tensor.scatter %s into %d[%i] scatter_dims([0]) unique
      : (tensor<600000000xf32>, tensor<5xf32>, tensor<600000000x1xindex>) -> tensor<5xf32>
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
