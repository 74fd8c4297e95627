// RUN: tessera-opt %s --split-input-file --verify-diagnostics

// (C6) exp(a + b) is not exp(a) + exp(b).
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> tensor<4xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  // expected-error@+1 {{'math.exp' op operand 0 is partial(sum); in the local view only linear operations take partial values, reduce it first}}
  %0 = math.exp %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// (C6) The other term would be added on every device.
#id = affine_map<(i) -> (i)>
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>},
             %b: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [replicate]>})
    -> (tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@+1 {{'linalg.generic' op operand 0 is partial(sum)}}
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// (C6) The result of a linear op on contributions is a contribution.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4x2xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> tensor<2x4xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %e = tensor.empty() : tensor<2x4xf32>
  // expected-error@+1 {{'linalg.transpose' op operand 0 is partial(sum)}}
  %0 = linalg.transpose ins(%a : tensor<4x2xf32>) outs(%e : tensor<2x4xf32>) permutation = [1, 0]
      {dist.shardings = [#dist.sharding<@m, [replicate]>]}
  return %0 : tensor<2x4xf32>
}

// -----
// (C6) A maximum of sums is no sum of maxima: other reductions pass through moves only.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4xf32>)
    -> (tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(max)]>})
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %p = dist.make_partial %a over @m ["x"] reduction = max
      {dist.shardings = [#dist.sharding<@m, [partial(max)]>]} : tensor<4xf32>
  // expected-error@+1 {{'arith.addf' op operand 0 is partial(max)}}
  %0 = arith.addf %p, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// (C6) A result without an annotation is whole.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}) -> tensor<4xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  // expected-error@+1 {{'func.return' op operand 0 is partial(sum)}}
  return %a : tensor<4xf32>
}

// -----
// (C6) A loop carry is partial if its result is.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %n: index) -> tensor<4xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op operand 3 is partial(sum)}}
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %a) -> tensor<4xf32> {
    scf.yield %v : tensor<4xf32>
  } {dist.shardings = [#dist.sharding<@m, [replicate]>]}
  return %0 : tensor<4xf32>
}

// -----
// (C6) An element of a contribution is a contribution.
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %i: index) -> tensor<4xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  // expected-error@+1 {{'tensor.extract' op operand 0 is partial(sum)}}
  %e = tensor.extract %a[%i] : tensor<4xf32>
  %0 = tensor.splat %e : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// (C6) An element of a contribution plus a number other than zero is none.
#id = affine_map<(i) -> (i)>
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<4xf32> {dist.sharding = #dist.sharding<@m, [partial(sum)]>}, %at: tensor<4xindex>) -> tensor<4xf32>
    attributes {dist.view = "local", dist.mesh = @m, dist.mesh_devices = array<i64: 0, 1>} {
  %empty = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%at : tensor<4xindex>) outs(%empty : tensor<4xf32>) {
  ^bb0(%i: index, %o: f32):
    %one = arith.constant 1.0 : f32
    // expected-error@+1 {{'tensor.extract' op operand 0 is partial(sum)}}
    %e = tensor.extract %a[%i] : tensor<4xf32>
    %s = arith.addf %e, %one : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
// The verifier of the user fails after that of its operand.
#first = affine_map<(i, j) -> (i)>
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> attributes {dist.view = "local", dist.part_of = "main"} {
  %e = arith.constant dense<0.0> : tensor<8xf32>
  %0 = arith.addf %a, %a {dist.shardings = [#dist.sharding<@m, [partial(sum)]>]} : tensor<8xf32>
  // expected-error@+1 {{invalid indexing maps are non-invertible}}
  %1 = linalg.generic {indexing_maps = [#first, #first], iterator_types = ["parallel", "reduction"]}
      ins(%0 : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
