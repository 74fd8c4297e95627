// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check | FileCheck %s --check-prefix=VALUE

// A penalty on scores of a cut vocabulary: scores are looked up at clamped indices, scaled, and written
// back where the index is valid. Each device computes those that it has, and nothing is sent.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#two = affine_map<(d0, d1) -> (d0, d1)>
#score = affine_map<(b, t, v) -> (b, v)>
#token = affine_map<(b, t, v) -> (b, t)>
#written = affine_map<(b, v, t) -> (b, v)>
#update = affine_map<(b, v, t) -> (b, t)>

// CHECK-LABEL: func.func @main(
// CHECK: %[[HIT:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<3x16xi1>)
// CHECK: arith.select {{.*}} : i1
// CHECK: %[[ALL:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<3x16xf32>)
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}} ins(%[[HIT]], %[[ALL]], %arg0 :
// BYTES: total: 0 collectives
// VALUE: check {{.*}} ok
func.func @main(%x: tensor<3x16xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}, %i: tensor<3x5xi32>)
    -> (tensor<3x16xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) {
  %e = tensor.empty() : tensor<3x5xi32>
  %clamped = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<3x5xi32>) outs(%e : tensor<3x5xi32>) {
  ^bb0(%in: i32, %out: i32):
    %zero = arith.constant 0 : i32
    %most = arith.constant 15 : i32
    %low = arith.maxsi %in, %zero : i32
    %at = arith.minsi %low, %most : i32
    linalg.yield %at : i32
  } -> tensor<3x5xi32>
  %none = arith.constant dense<0.0> : tensor<3x5xf32>
  %s = linalg.generic {indexing_maps = [#score, #token, #token], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %clamped : tensor<3x16xf32>, tensor<3x5xi32>) outs(%none : tensor<3x5xf32>) {
  ^bb0(%in: f32, %at: i32, %out: f32):
    %v = linalg.index 2 : index
    %n = arith.index_cast %v : index to i32
    %is = arith.cmpi eq, %at, %n : i32
    %zero = arith.constant 0.0 : f32
    %term = arith.select %is, %in, %zero : f32
    %sum = arith.addf %out, %term : f32
    linalg.yield %sum : f32
  } -> tensor<3x5xf32>
  %f = tensor.empty() : tensor<3x5xf32>
  %u = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<3x5xf32>) outs(%f : tensor<3x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %scale = arith.constant 1.5 : f32
    %m = arith.mulf %in, %scale : f32
    linalg.yield %m : f32
  } -> tensor<3x5xf32>
  %valid = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel"]}
      ins(%i : tensor<3x5xi32>) outs(%e : tensor<3x5xi32>) {
  ^bb0(%in: i32, %out: i32):
    %zero = arith.constant 0 : i32
    %most = arith.constant 15 : i32
    %begins = arith.cmpi sge, %in, %zero : i32
    %ends = arith.cmpi sle, %in, %most : i32
    %is = arith.andi %begins, %ends : i1
    %nowhere = arith.constant -1000 : i32
    %at = arith.select %is, %in, %nowhere : i32
    linalg.yield %at : i32
  } -> tensor<3x5xi32>
  %y = linalg.generic {indexing_maps = [#update, #update, #written], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%u, %valid : tensor<3x5xf32>, tensor<3x5xi32>) outs(%x : tensor<3x16xf32>) {
  ^bb0(%in: f32, %at: i32, %out: f32):
    %v = linalg.index 1 : index
    %n = arith.index_cast %v : index to i32
    %is = arith.cmpi eq, %at, %n : i32
    %set = arith.select %is, %in, %out : f32
    linalg.yield %set : f32
  } -> tensor<3x16xf32>
  return %y : tensor<3x16xf32>
}
