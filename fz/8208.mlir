#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [1, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<16x2xi32> {dist.range = [-4, 5]}, %arg1: tensor<2x5xi32> {dist.range = [-4, 5]}, %arg2: tensor<16x5xi32> {dist.range = [-4, 5]}) -> (tensor<16x2xi32> {dist.feeds = 0 : i64}) {
    %c3_i32 = arith.constant 3 : i32
    %splat = tensor.splat %c3_i32 : tensor<16x2xi32>
    %0 = arith.floordivsi %arg0, %splat : tensor<16x2xi32>
    %cst = arith.constant dense<3> : tensor<1xi32>
    %c0 = arith.constant 0 : index
    %extracted = tensor.extract %cst[%c0] : tensor<1xi32>
    %1 = arith.index_cast %extracted : i32 to index
    %c0_0 = arith.constant 0 : index
    %2:2 = scf.while (%arg3 = %c0_0, %arg4 = %0) : (index, tensor<16x2xi32>) -> (index, tensor<16x2xi32>) {
      %5 = arith.cmpi slt, %arg3, %1 : index
      scf.condition(%5) %arg3, %arg4 : index, tensor<16x2xi32>
    } do {
    ^bb0(%arg3: index, %arg4: tensor<16x2xi32>):
      %5 = linalg.matmul ins(%arg0, %arg1 : tensor<16x2xi32>, tensor<2x5xi32>) outs(%arg2 : tensor<16x5xi32>) -> tensor<16x5xi32>
      %c1 = arith.constant 1 : index
      %6 = arith.addi %arg3, %c1 : index
      scf.yield %6, %arg4 : index, tensor<16x2xi32>
    }
    %3 = tensor.empty() : tensor<16x2xi32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2#1 : tensor<16x2xi32>) outs(%3 : tensor<16x2xi32>) {
    ^bb0(%in: i32, %out: i32):
      %5 = linalg.index 0 : index
      %6 = linalg.index 1 : index
      %c-1 = arith.constant -1 : index
      %7 = arith.addi %6, %c-1 : index
      %8 = arith.cmpi sge, %5, %7 : index
      %c0_i32 = arith.constant 0 : i32
      %9 = arith.select %8, %in, %c0_i32 : i32
      linalg.yield %9 : i32
    } -> tensor<16x2xi32>
    return %4 : tensor<16x2xi32>
  }
}

