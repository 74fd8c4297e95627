#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d0)>
#map4 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, -d1 + 8, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  dist.process_mesh @m(shape = [3, 4], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<14xf32> {dist.sharding = #dist.sharding<@m, [?, shard(0)]>}, %arg1: tensor<12x4xi32> {dist.range = [-4, 5], dist.sharding = #dist.sharding<@m, dims = [["a0"], ["a1":(2)2, "a1":(1)2]]>}, %arg2: tensor<9x10xi32> {dist.range = [-4, 5]}, %arg3: tensor<15x5xi32> {dist.range = [-4, 5]}, %arg4: tensor<15xi32> {dist.range = [-2, 16]}) -> tensor<4x9x7x10xi32> {
    %cst = arith.constant dense<2> : tensor<i64>
    %c3 = arith.constant 3 : index
    %c3_0 = arith.constant 3 : index
    %c2 = arith.constant 2 : index
    %0:2 = scf.for %arg5 = %c3 to %c3_0 step %c2 iter_args(%arg6 = %cst, %arg7 = %arg0) -> (tensor<i64>, tensor<14xf32>) {
      %11 = arith.cmpi sgt, %arg6, %arg6 : tensor<i64>
      %12 = arith.select %11, %arg6, %arg6 : tensor<i1>, tensor<i64>
      %13 = arith.addi %arg6, %12 : tensor<i64>
      %cst_2 = arith.constant dense<"0x0000003E0000403F0000C0BE000080BE0000003F000080BE000080BE0000803E0000803F0000003E0000603F000080BF000040BF000000BF0000203F00000000000020BF0000C03E0000C0BE0000603F0000403F000020BF000060BF000040BF000020BF000080BE000060BF0000003F0000403F0000C0BE000020BF0000203F000000000000203F0000603F0000C0BE0000C03E000020BF000020BF000060BF000080BF000000BE0000403F00000000000000BF0000C03E0000003E0000003E0000C0BE0000403F000020BF000040BF0000603F000020BF0000803F0000803E0000003E000000BF0000003E000060BF000020BF000020BF000020BF0000603F000080BF0000C0BE000020BF0000803E000040BF0000203F000080BE0000003F000080BF000000BE000060BF0000003E0000203F0000003F0000C03E0000803E000060BF0000C0BE0000C0BE000000BF000040BF0000403F0000003E000080BF0000803F000080BF000080BF000020BF0000C03E000080BE000000BF000000BE0000403F000000BF000080BE0000003E000000BF0000C03E000000000000C03E00000000000000BE000080BE000000BE000000BF0000C0BE0000803F0000003F0000803E0000003F000000BF00000000000000BF0000003F0000C0BE0000C03E000080BF000000BE0000403F0000803E0000203F0000803E0000C03E0000C0BE000080BF000060BF0000C0BE0000803E000040BF000060BF000080BE000000000000803F000040BF000060BF000080BF000060BF0000003F0000803F000020BF0000803E000080BE000000000000203F0000C03E0000C0BE0000C03E0000403F0000803F000080BE0000803E0000803F0000C0BE000000000000003F0000C03E0000403F000000BE000000000000603F0000203F0000003E0000C0BE0000403F0000C03E000000BF000080BF000080BE0000603F0000603F0000C0BE000060BF000000BE0000603F0000203F000000BE0000003F0000803E0000403F0000803F0000803F0000803F0000C0BE000040BF000080BE0000C0BE000080BF0000C0BE000000BE0000C03E000040BF000080BF000060BF0000C0BE0000803F0000003F0000003E000040BF000060BF0000003F000060BF000000BF000020BF0000C03E000060BF000080BF0000803E0000603F0000003F0000403F0000803F000080BF0000803F000000BE000000000000C0BE0000603F0000803E000020BF000060BF"> : tensor<14x16xf32>
      %14 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%cst_2 : tensor<14x16xf32>) outs(%arg7 : tensor<14xf32>) {
      ^bb0(%in: f32, %out: f32):
        %16 = arith.addf %out, %in : f32
        linalg.yield %16 : f32
      } -> tensor<14xf32>
      %cst_3 = arith.constant 1.250000e-01 : f32
      %splat = tensor.splat %cst_3 : tensor<14xf32>
      %15 = arith.mulf %14, %splat : tensor<14xf32>
      scf.yield %13, %15 : tensor<i64>, tensor<14xf32>
    }
    %1 = tensor.empty() : tensor<12x4xi32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<12x4xi32>) outs(%1 : tensor<12x4xi32>) {
    ^bb0(%in: i32, %out: i32):
      %11 = linalg.index 0 : index
      %12 = linalg.index 1 : index
      %c0 = arith.constant 0 : index
      %13 = arith.addi %12, %c0 : index
      %14 = arith.cmpi sge, %11, %13 : index
      %c5_i32 = arith.constant 5 : i32
      %15 = arith.select %14, %in, %c5_i32 : i32
      linalg.yield %15 : i32
    } -> tensor<12x4xi32>
    %collapsed = tensor.collapse_shape %2 [[0, 1]] : tensor<12x4xi32> into tensor<48xi32>
    %3 = tensor.empty() : tensor<4x9x7x10xi32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<9x10xi32>) outs(%3 : tensor<4x9x7x10xi32>) dimensions = [0, 2] 
    %4 = arith.subi %broadcasted, %broadcasted : tensor<4x9x7x10xi32>
    %c0_i32 = arith.constant 0 : i32
    %5 = tensor.empty() : tensor<14x5xi32>
    %6 = linalg.fill ins(%c0_i32 : i32) outs(%5 : tensor<14x5xi32>) -> tensor<14x5xi32>
    %7 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["reduction", "parallel", "parallel"]} ins(%arg3, %arg4 : tensor<15x5xi32>, tensor<15xi32>) outs(%6 : tensor<14x5xi32>) {
    ^bb0(%in: i32, %in_2: i32, %out: i32):
      %11 = linalg.index 2 : index
      %12 = arith.index_cast %11 : index to i32
      %13 = arith.cmpi eq, %in_2, %12 : i32
      %c2147483647_i32 = arith.constant 2147483647 : i32
      %14 = arith.select %13, %in, %c2147483647_i32 : i32
      %15 = arith.minsi %out, %14 : i32
      linalg.yield %15 : i32
    } -> tensor<14x5xi32>
    %8 = tensor.empty() : tensor<4x9x7x10xi32>
    %9 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%broadcasted : tensor<4x9x7x10xi32>) outs(%8 : tensor<4x9x7x10xi32>) {
    ^bb0(%in: i32, %out: i32):
      linalg.yield %in : i32
    } -> tensor<4x9x7x10xi32>
    %cst_1 = arith.constant dense<3> : tensor<4x9x7x10xi32>
    %10 = arith.floordivsi %9, %cst_1 : tensor<4x9x7x10xi32>
    return %10 : tensor<4x9x7x10xi32>
  }
}

