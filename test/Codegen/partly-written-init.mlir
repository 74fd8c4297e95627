// RUN: tessera run %s --function diagonal --check=interpreter | FileCheck %s
// RUN: tessera run %s --function row --check=interpreter | FileCheck %s
// RUN: tessera run %s --function every_second --check=interpreter | FileCheck %s
// RUN: tessera run %s --function constant_diagonal --check=interpreter | FileCheck %s
// RUN: tessera run %s --function no_iteration --check=interpreter | FileCheck %s

// Elements that an op does not write keep the value of the init, although the body does not read it.
// CHECK: result0 ok equal

dist.process_mesh @m(shape = [4], dim_names = ["x"])

func.func @diagonal(%b: tensor<9xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}) -> tensor<9x9xf32> {
  %ones = arith.constant dense<1.0> : tensor<9x9xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]}
      ins(%b : tensor<9xf32>) outs(%ones : tensor<9x9xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<9x9xf32>
  return %0 : tensor<9x9xf32>
}

func.func @row(%b: tensor<5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %i: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (0, i)>], iterator_types = ["parallel"]}
      ins(%b : tensor<5xf32>) outs(%i : tensor<3x5xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

func.func @every_second(%b: tensor<5xf32> {dist.sharding = #dist.sharding<@m, [shard(0)]>}, %i: tensor<9xf32>) -> tensor<9xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (2 * i)>], iterator_types = ["parallel"]}
      ins(%b : tensor<5xf32>) outs(%i : tensor<9xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// A body with a constant yield is a fill only if it writes all elements.
func.func @constant_diagonal(%a: tensor<6x6xf32>, %b: tensor<6xf32>) -> tensor<6x6xf32> {
  %c = arith.constant 2.0 : f32
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>], iterator_types = ["parallel"]}
      ins(%b : tensor<6xf32>) outs(%a : tensor<6x6xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %c : f32
  } -> tensor<6x6xf32>
  return %0 : tensor<6x6xf32>
}

func.func @no_iteration(%a: tensor<4x0xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<4x0xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
