// RUN: tessera run %s --check --no-cache | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline --codegen-prepare --codegen-fuse --codegen-outline-kernels | FileCheck %s --check-prefix=KERNEL

// The loop of a scatter has constant bounds inside its kernel: steps pass only tensors. With a mesh it would be a nest that
// selects (test/Transforms/Normalize/form-lookups.mlir).
// CHECK: check  result0  ok
// KERNEL: func.func private @k0_scatter(%{{.*}}: tensor<3x1xindex>, %{{.*}}: tensor<3x1x2xf32>, %{{.*}}: tensor<8x2xf32>) -> tensor<8x2xf32>
func.func @main(%into: tensor<8x2xf32>,
                %rows: tensor<3x1x2xf32>) -> tensor<8x2xf32> {
  %places = arith.constant dense<[[6], [0], [3]]> : tensor<3x1xindex>
  %0 = tensor.scatter %rows into %into[%places] scatter_dims([0]) unique
      : (tensor<3x1x2xf32>, tensor<8x2xf32>, tensor<3x1xindex>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}
