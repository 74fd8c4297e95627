// RUN: tessera-opt %s | FileCheck %s

// Uses of contributions that rule C6 allows.
#id = affine_map<(i, j) -> (i, j)>
dist.process_mesh @m(shape = [2, 1], dim_names = ["x", "one"])

// Sums of contributions, moves, accumulators, loops that carry them, results annotated partial.
// CHECK-LABEL: func.func @linear(
func.func @linear(%a: tensor<2x2xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>},
                  %b: tensor<2x2xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>},
                  %w: tensor<2x2xf32>)
    -> (tensor<2x2xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<2x2xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2xf32>)
      attrs = {dist.shardings = [#dist.sharding<@m, [partial(sum)]>]} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x2xf32>
  %t = linalg.transpose ins(%s : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) permutation = [1, 0]
      {dist.shardings = [#dist.sharding<@m, [partial(sum)]>]}
  %m = linalg.matmul {dist.shardings = [#dist.sharding<@m, [partial(sum)]>]}
      ins(%t, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%b : tensor<2x2xf32>) -> tensor<2x2xf32>
  %l = scf.for %i = %c0 to %c1 step %c1 iter_args(%v = %m) -> tensor<2x2xf32> {
    scf.yield %v : tensor<2x2xf32>
  } {dist.shardings = [#dist.sharding<@m, [partial(sum)]>]}
  return %l : tensor<2x2xf32>
}

// The contribution over an axis of one device is the value; the global view has no restrictions.
// CHECK-LABEL: func.func @one(
func.func @one(%a: tensor<2x2xf32> {dist.sharding = #dist.sharding<@m, [replicate, partial(sum)]>}) -> tensor<2x2xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %0 = math.exp %a : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// CHECK-LABEL: func.func @global(
func.func @global(%a: tensor<2x2xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> tensor<2x2xf32> {
  %0 = math.exp %a : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
