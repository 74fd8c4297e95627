// RUN: tessera-opt %s --codegen-prepare --codegen-fuse --split-input-file | FileCheck %s

// Softmax is one kernel: its four ops have the rows in common.

// CHECK-LABEL: func.func @softmax(
func.func @softmax(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {dist.view = "local"} {
  %e = tensor.empty() : tensor<64x128xf32>
  // CHECK: %[[R:.*]] = rt.group "max_sub_exp_div" {
  // CHECK-COUNT-4: linalg.generic
  // CHECK: rt.yield
  // CHECK-NOT: rt.group
  // CHECK: return %[[R]]
  %s = linalg.softmax dimension(1) ins(%x : tensor<64x128xf32>) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %s : tensor<64x128xf32>
}

// -----

// A sum over rows and a sum over columns have no rows in common.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @rows_and_columns(
func.func @rows_and_columns(%x: tensor<64x128xf32>) -> (tensor<64xf32>, tensor<128xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  // CHECK: rt.group "exp_add" {
  // CHECK: } : tensor<64x128xf32>, tensor<64xf32>
  // CHECK: rt.group "add" {
  // CHECK: } : tensor<128xf32>
  %y = math.exp %x : tensor<64x128xf32>
  %er = tensor.empty() : tensor<64xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%y : tensor<64x128xf32>) outs(%zr : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  %ec = tensor.empty() : tensor<128xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<128xf32>) -> tensor<128xf32>
  %c = linalg.generic {indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]}
    ins(%y : tensor<64x128xf32>) outs(%zc : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  return %r, %c : tensor<64xf32>, tensor<128xf32>
}

// -----

// Kernels do not depend on each other in cycles: the addition cannot join the exponential, since
// the collective between them depends on it.

dist.process_mesh @pod(shape = [2], dim_names = ["x"])
// CHECK-LABEL: func.func @around_a_collective(
func.func @around_a_collective(%x: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {dist.view = "local", dist.mesh = @pod} {
  // CHECK: %[[E:.*]] = rt.group "exp"
  %y = math.exp %x : tensor<64x128xf32>
  // CHECK: %[[S:.*]] = dist.all_reduce %[[E]]
  %s = dist.all_reduce %y over @pod ["x"] reduction = sum : tensor<64x128xf32>
  // CHECK: rt.group "add"
  %z = arith.addf %y, %s : tensor<64x128xf32>
  return %z : tensor<64x128xf32>
}

// -----

// A slice that only kernels read is taken inside them.

// CHECK-LABEL: func.func @slice(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @slice(%x: tensor<4x8xf32>) -> tensor<4x3xf32> attributes {dist.view = "local"} {
  // CHECK: rt.group "exp" {
  // CHECK: %[[S:.*]] = tensor.extract_slice %[[X]][0, 2] [4, 3] [1, 1]
  // CHECK: linalg.generic {{.*}} ins(%[[S]]
  %s = tensor.extract_slice %x[0, 2] [4, 3] [1, 1] : tensor<4x8xf32> to tensor<4x3xf32>
  %e = math.exp %s : tensor<4x3xf32>
  return %e : tensor<4x3xf32>
}

// -----

// A fill that initializes a gemm is not a kernel; one that is returned is.

// CHECK-LABEL: func.func @fills(
func.func @fills(%a: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  // CHECK: rt.group "fill"
  // CHECK: linalg.matmul
  // CHECK-NOT: rt.group
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %m, %z : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A group whose ops are far apart lets what lies between wait for what is behind: the last product does not join f, since the
// contraction waits for the first group, which waits for f.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
#line = affine_map<(d0) -> (d0)>
// CHECK-LABEL: func.func @far_apart(
func.func @far_apart(%x: tensor<64x64xf32>, %y: tensor<64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>)
    attributes {dist.view = "local"} {
  %e = tensor.empty() : tensor<64x64xf32>
  %l = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[F:.*]] = rt.group "tanh" {
  // CHECK: %[[FIRST:.*]]:2 = rt.group "exp_{{.*}}add" {
  // CHECK: %[[G:.*]] = linalg.matmul ins(%[[FIRST]]#0
  // CHECK: rt.group "mul" {
  // CHECK: ins(%[[G]], %[[F]]
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = math.exp %i : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %g = linalg.matmul ins(%a, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) -> tensor<64x64xf32>
  %f = linalg.generic {indexing_maps = [#line, #line], iterator_types = ["parallel"]} ins(%y : tensor<64xf32>) outs(%l : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %v = math.tanh %i : f32
    linalg.yield %v : f32
  } -> tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#id, #row, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %f, %f : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32, %o: f32):
    %p = arith.mulf %j, %k : f32
    %v = arith.addf %i, %p : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  %c = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%g, %f : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %v = arith.mulf %i, %j : f32
    linalg.yield %v : f32
  } -> tensor<64x64xf32>
  return %b, %c : tensor<64x64xf32>, tensor<64x64xf32>
}
