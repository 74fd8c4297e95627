// A window of a padded, rearranged value reaches beyond the tensor along a dimension that is not rearranged: there it is
// filled where the rearrangement's operand is.
// RUN: tessera run %s --check --no-cache | FileCheck %s
// CHECK: check  y  ok  equal

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
dist.process_mesh @m(shape = [3, 1, 4], dim_names = ["a0", "a1", "a2"])
func.func @main(%x: tensor<2xi32> {dist.name = "x", dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(0), partial(sum)]>},
                %z: tensor<4x2x5xi32> {dist.name = "z", dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, [shard(-1, order = 0), shard(-1, order = 1)]>})
    -> (tensor<8x2x5xi32> {dist.name = "y"}) {
  %expanded = tensor.expand_shape %x [[0, 1, 2]] output_shape [2, 1, 1] : tensor<2xi32> into tensor<2x1x1xi32>
  %three = arith.constant 3 : i32
  %padded = tensor.pad %expanded low[1, 0, 2] high[1, 1, 2] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %three : i32
  } : tensor<2x1x1xi32> to tensor<4x2x5xi32>
  %upper = tensor.extract_slice %padded[2, 0, 0] [2, 2, 5] [1, 1, 1] : tensor<4x2x5xi32> to tensor<2x2x5xi32>
  %lower = tensor.extract_slice %padded[0, 0, 0] [2, 2, 5] [1, 1, 1] : tensor<4x2x5xi32> to tensor<2x2x5xi32>
  %rolled = tensor.concat dim(0) %upper, %lower : (tensor<2x2x5xi32>, tensor<2x2x5xi32>) -> tensor<4x2x5xi32>
  %zeros = arith.constant dense<0> : tensor<8x2x5xi32>
  %even = tensor.insert_slice %rolled into %zeros[0, 0, 0] [4, 2, 5] [2, 1, 1] : tensor<4x2x5xi32> into tensor<8x2x5xi32>
  %odd = tensor.insert_slice %z into %zeros[1, 0, 0] [4, 2, 5] [2, 1, 1] : tensor<4x2x5xi32> into tensor<8x2x5xi32>
  %empty = tensor.empty() : tensor<8x2x5xi32>
  %y = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%even, %odd : tensor<8x2x5xi32>, tensor<8x2x5xi32>) outs(%empty : tensor<8x2x5xi32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %s = arith.addi %a, %b : i32
    linalg.yield %s : i32
  } -> tensor<8x2x5xi32>
  return %y : tensor<8x2x5xi32>
}
