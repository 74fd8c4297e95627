// RUN: tessera-opt %s --codegen-prepare | FileCheck %s
// RUN: tessera-opt %s --codegen-prepare=parallel | FileCheck %s --check-prefix=GPU

// A kernel reads a device's part of an argument in place. On GPUs, whose loads are wide where the compiler knows their
// alignment, it is copied.
dist.process_mesh @m(shape = [2, 2], dim_names = ["x", "y"])

// CHECK-LABEL: func.func @update(
// CHECK-SAME: %[[P:.*]]: tensor<8x6xf32>, %[[G:.*]]: tensor<2x6xf32>)
// CHECK: dist.axis_index over @m ["y", "x"]
// CHECK-NOT: dist.slice
// CHECK: tensor.extract_slice %[[P]][%{{.*}}, 0] [2, 6] [1, 1]
// CHECK-NOT: dist.slice
// GPU-LABEL: func.func @update(
// GPU: dist.slice
func.func @update(%p: tensor<8x6xf32>, %g: tensor<2x6xf32>) -> tensor<2x6xf32> attributes {dist.view = "local"} {
  %own = dist.slice %p over @m ["y", "x"] dim = 0 : tensor<8x6xf32> -> tensor<2x6xf32>
  %new = arith.subf %own, %g : tensor<2x6xf32>
  return %new : tensor<2x6xf32>
}

// Not of a value that is freed otherwise, nor of a part that is returned.
// CHECK-LABEL: func.func @copied(
// CHECK-COUNT-2: dist.slice
func.func @copied(%p: tensor<8x6xf32>, %g: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) attributes {dist.view = "local"} {
  %q = arith.addf %p, %p : tensor<8x6xf32>
  %a = dist.slice %q over @m ["x"] dim = 0 : tensor<8x6xf32> -> tensor<4x6xf32>
  %b = dist.slice %p over @m ["x"] dim = 0 : tensor<8x6xf32> -> tensor<4x6xf32>
  %c = arith.addf %a, %g : tensor<4x6xf32>
  return %b, %c : tensor<4x6xf32>, tensor<4x6xf32>
}
