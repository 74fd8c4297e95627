// RUN: tessera-opt %s --codegen-prepare --split-input-file | FileCheck %s

// A coordinate is a rank-0 tensor; scalar arithmetic stays with its users.

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// CHECK-LABEL: func.func @coordinate(
func.func @coordinate(%a: tensor<4xf32>) -> tensor<4xindex> attributes {dist.view = "local", dist.mesh = @pod} {
  %c4 = arith.constant 4 : index
  // CHECK: %[[I:.*]] = dist.axis_index over @pod ["x"] : index
  // CHECK-NEXT: %[[T:.*]] = tensor.from_elements %[[I]] : tensor<index>
  // CHECK-NEXT: %[[S:.*]] = tensor.extract %[[T]][] : tensor<index>
  // CHECK-NOT: dist.axis_index
  %i = dist.axis_index over @pod ["x"] : index
  %j = dist.axis_index over @pod ["x"] : index
  // CHECK: arith.muli %[[S]], %{{.*}} : index
  %o = arith.muli %i, %c4 : index
  %p = arith.addi %o, %j : index
  // CHECK: linalg.fill
  %r = tensor.splat %p : tensor<4xindex>
  return %r : tensor<4xindex>
}

// -----

// Loop carries become tensors, and the counter is an index.

// CHECK-LABEL: func.func @scalar_carry(
func.func @scalar_carry(%n: tensor<i32>) -> tensor<f32> attributes {dist.view = "local"} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %f = arith.constant 1.0 : f32
  %ub = tensor.extract %n[] : tensor<i32>
  // CHECK: %[[INIT:.*]] = tensor.from_elements %{{.*}} : tensor<f32>
  // CHECK: %[[UB:.*]] = tensor.extract %{{.*}}[] : tensor<index>
  // CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[UB]] step %{{.*}} iter_args(%[[A:.*]] = %[[INIT]]) -> (tensor<f32>) {
  // CHECK: tensor.from_elements %[[I]] : tensor<index>
  // CHECK: scf.yield %{{.*}} : tensor<f32>
  %r = scf.for %i = %c0 to %ub step %c1 iter_args(%a = %f) -> f32 : i32 {
    %x = arith.sitofp %i : i32 to f32
    %b = arith.addf %a, %x : f32
    scf.yield %b : f32
  }
  // CHECK: return %[[R]] : tensor<f32>
  %t = tensor.from_elements %r : tensor<f32>
  return %t : tensor<f32>
}

// -----

// An element of a larger tensor is extracted directly; a condition is the element of a tensor.

// CHECK-LABEL: func.func @condition(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
func.func @condition(%x: tensor<4xf32>) -> tensor<4xf32> attributes {dist.view = "local"} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1.0 : f32
  // CHECK: %[[V:.*]] = tensor.extract %[[X]]
  // CHECK-NEXT: %[[T:.*]] = tensor.from_elements %[[V]]
  // CHECK-NEXT: tensor.extract %[[T]][]
  %v = tensor.extract %x[%c0] : tensor<4xf32>
  // CHECK: %[[CT:.*]] = tensor.from_elements %{{.*}} : tensor<i1>
  // CHECK-NEXT: %[[C:.*]] = tensor.extract %[[CT]][] : tensor<i1>
  %c = arith.cmpf olt, %v, %f : f32
  // CHECK: scf.if %[[C]]
  %r = scf.if %c -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    // CHECK: linalg.generic
    %s = arith.addf %x, %x : tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Structural ops become slices of a buffer; named ops become generics, contractions stay.

// CHECK-LABEL: func.func @structural(
func.func @structural(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> (tensor<4x3xf32>, tensor<4x4xf32>, tensor<3x2xf32>, tensor<2x4xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  // CHECK: tensor.insert_slice
  // CHECK: tensor.insert_slice
  // CHECK-NOT: tensor.concat
  %c = tensor.concat dim(0) %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  // CHECK: linalg.fill
  // CHECK: tensor.insert_slice
  // CHECK-NOT: tensor.pad
  %p = tensor.pad %x low[1, 0] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<2x3xf32> to tensor<4x4xf32>
  // CHECK: linalg.generic
  // CHECK-NOT: linalg.transpose
  %e = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%x : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  // CHECK: linalg.matmul
  %em = tensor.empty() : tensor<2x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%em : tensor<2x4xf32>) -> tensor<2x4xf32>
  %m = linalg.matmul ins(%x, %y : tensor<2x3xf32>, tensor<3x4xf32>) outs(%z : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %c, %p, %t, %m : tensor<4x3xf32>, tensor<4x4xf32>, tensor<3x2xf32>, tensor<2x4xf32>
}
