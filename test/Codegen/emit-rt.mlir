// RUN: tessera-opt %s --codegen --split-input-file | FileCheck %s

// The parameter's new value is computed in place; nothing is copied.

// CHECK-LABEL: rt.program @main
// CHECK: rt.part "main" over @devices
// CHECK: %[[W:.*]] = rt.slot "w"
// CHECK: rt.argument_home 0 in %[[W]]
// CHECK: rt.result_home 0 in %[[W]]
// CHECK: rt.launch @k0_sub(%[[W]], %{{.*}}) to (%[[W]])
// CHECK-NOT: rt.copy
func.func @main(%w: tensor<4x8xf32> {dist.name = "w"}, %g: tensor<4x8xf32>) -> (tensor<4x8xf32> {dist.feeds = 0})
    attributes {dist.view = "local"} {
  %n = arith.subf %w, %g : tensor<4x8xf32>
  return %n : tensor<4x8xf32>
}

// -----

// The old value is also a result: it is copied before.

// CHECK-LABEL: rt.program @old_and_new
// CHECK: rt.launch @k0_sub(%[[W:.*]], %{{.*}}) to (%[[N:.*]]) :
// CHECK-NEXT: rt.copy %[[W]] to %[[OLD:.*]] :
// CHECK-NEXT: rt.copy %[[N]] to %[[W]] :
func.func @old_and_new(%w: tensor<4x8xf32>, %g: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32> {dist.feeds = 0})
    attributes {dist.view = "local"} {
  %n = arith.subf %w, %g : tensor<4x8xf32>
  return %w, %n : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A reshape and a slice of rows are other slots over the same bytes.

// CHECK-LABEL: rt.program @views
// CHECK: %[[ROWS:.*]] = rt.slot "arg0.64" at {{[0-9]+}} : !rt.slot<2x8xf32>
// CHECK: rt.launch @k0_exp(%[[ROWS]])
// CHECK: rt.gemm
// CHECK-NOT: rt.launch
func.func @views(%x: tensor<4x8xf32>, %y: tensor<32x2xf32>) -> (tensor<2x8xf32>, tensor<1x2xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %s = tensor.extract_slice %x[2, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
  %e = math.exp %s : tensor<2x8xf32>
  %c = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %r = tensor.expand_shape %c [[0, 1]] output_shape [1, 32] : tensor<32xf32> into tensor<1x32xf32>
  %em = tensor.empty() : tensor<1x2xf32>
  %z = linalg.fill ins(%zero : f32) outs(%em : tensor<1x2xf32>) -> tensor<1x2xf32>
  %m = linalg.matmul ins(%r, %y : tensor<1x32xf32>, tensor<32x2xf32>) outs(%z : tensor<1x2xf32>) -> tensor<1x2xf32>
  return %e, %m : tensor<2x8xf32>, tensor<1x2xf32>
}

// -----

// A carry that is dead when its new value is computed is overwritten; the counter has a slot.

// CHECK-LABEL: rt.program @loop
// CHECK: rt.copy %{{.*}} to %[[A:.*]] :
// CHECK: rt.loop %[[I:.*]] = 0 to 10 step 2 {
// CHECK-NEXT: rt.launch @k0_add{{.*}}(%[[I]], %[[A]]) to (%[[A]])
// CHECK-NEXT: }
// CHECK-NOT: rt.copy
func.func @loop(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {dist.view = "local"} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c10 = arith.constant 10 : index
  %r = scf.for %i = %c0 to %c10 step %c2 iter_args(%a = %x) -> tensor<4x8xf32> {
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %s = tensor.splat %f : tensor<4x8xf32>
    %b = arith.addf %a, %s : tensor<4x8xf32>
    scf.yield %b : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}

// -----

// Equal constants are one slot.

// CHECK-LABEL: rt.program @constants
// CHECK-COUNT-1: rt.constant
// CHECK-NOT: rt.constant
func.func @constants(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {dist.view = "local"} {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %a = arith.addf %x, %c : tensor<4xf32>
  %b = arith.mulf %a, %d : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
