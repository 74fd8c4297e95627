#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d1, d0, d2)>
module {
  dist.process_mesh @m(shape = [7], dim_names = ["a0"], process_ids = [5, 3, 2, 4, 0, 6, 1])
  func.func @main(%arg0: tensor<15x1xf32>, %arg1: tensor<2x8xi64> {dist.range = [0, 15], dist.sharding = #dist.sharding<@m, [shard(1)]>}, %arg2: tensor<24x1xi32> {dist.range = [-4, 5]}, %arg3: tensor<2x8x1xf32>) -> (tensor<8x2x1xf32>, tensor<2x8x1xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) {
    %0 = tensor.empty() : tensor<15x1xf32>
    %1 = linalg.softmax dimension(0) ins(%arg0 : tensor<15x1xf32>) outs(%0 : tensor<15x1xf32>) -> tensor<15x1xf32>
    %2 = tensor.empty() : tensor<2x8x1xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x8xi64>) outs(%2 : tensor<2x8x1xf32>) {
    ^bb0(%in: i64, %out: f32):
      %19 = arith.index_cast %in : i64 to index
      %20 = linalg.index 2 : index
      %extracted_0 = tensor.extract %1[%19, %20] : tensor<15x1xf32>
      linalg.yield %extracted_0 : f32
    } -> tensor<2x8x1xf32>
    %4 = tensor.empty() : tensor<2x8x1xf32>
    %5 = linalg.softmax dimension(1) ins(%3 : tensor<2x8x1xf32>) outs(%4 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c0 = arith.constant 0 : index
    %extracted = tensor.extract %3[%c1, %c3, %c0] : tensor<2x8x1xf32>
    %6 = arith.addf %extracted, %extracted : f32
    %7 = tensor.empty() : tensor<8xf32>
    %8 = linalg.fill ins(%6 : f32) outs(%7 : tensor<8xf32>) -> tensor<8xf32>
    %cst = arith.constant dense<[5, 1, 0, 18, 4, 14]> : tensor<6xi64>
    %9 = tensor.empty() : tensor<6x24xi32>
    %10 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%cst : tensor<6xi64>) outs(%9 : tensor<6x24xi32>) {
    ^bb0(%in: i64, %out: i32):
      %19 = linalg.index 1 : index
      %20 = arith.index_cast %19 : index to i64
      %21 = arith.cmpi eq, %in, %20 : i64
      %22 = arith.extui %21 : i1 to i32
      linalg.yield %22 : i32
    } -> tensor<6x24xi32>
    %c0_i32 = arith.constant 0 : i32
    %11 = tensor.empty() : tensor<6x1xi32>
    %12 = linalg.fill ins(%c0_i32 : i32) outs(%11 : tensor<6x1xi32>) -> tensor<6x1xi32>
    %13 = linalg.matmul ins(%10, %arg2 : tensor<6x24xi32>, tensor<24x1xi32>) outs(%12 : tensor<6x1xi32>) -> tensor<6x1xi32>
    %14 = tensor.empty() : tensor<2x8x1xf32>
    %15 = linalg.softmax dimension(0) ins(%3 : tensor<2x8x1xf32>) outs(%14 : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
    %16 = tensor.empty() : tensor<2x8x1xf32>
    %17 = tensor.empty() : tensor<8x2x1xf32>
    %18:2 = linalg.generic {indexing_maps = [#map1, #map1, #map1, #map4], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15, %arg3 : tensor<2x8x1xf32>, tensor<2x8x1xf32>) outs(%16, %17 : tensor<2x8x1xf32>, tensor<8x2x1xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32, %out_1: f32):
      %19 = arith.addf %in, %in_0 : f32
      %20 = arith.maximumf %in, %in_0 : f32
      linalg.yield %19, %20 : f32, f32
    } -> (tensor<2x8x1xf32>, tensor<8x2x1xf32>)
    return %18#1, %18#0 : tensor<8x2x1xf32>, tensor<2x8x1xf32>
  }
}

