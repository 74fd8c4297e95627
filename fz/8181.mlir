#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d2, d0)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  dist.process_mesh @m(shape = [2, 1], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<12xf32>, %arg1: tensor<i64> {dist.range = [-2, 14], dist.sharding = #dist.sharding<@m, [replicate, ?]>}, %arg2: tensor<4x8x10xf32> {dist.sharding = #dist.sharding<@m, [shard(1), shard(0)]>}, %arg3: tensor<12xf32> {dist.sharding = #dist.sharding<@m, [shard(0), replicate]>}, %arg4: tensor<2xf32> {dist.sharding = #dist.sharding<@m, [?, ?]>}, %arg5: tensor<10xf32>, %arg6: tensor<8x9xf32> {dist.sharding = #dist.sharding<@m, dims = [[], ["a0", "a1"]]>}) -> (tensor<26xf32> {dist.sharding = #dist.sharding<@m, dims = [["a1", "a0"]], priority = 1>}, tensor<26xf32>, tensor<9xf32> {dist.sharding = #dist.sharding<@m, [shard(0, order = 1), shard(0, order = 0)]>}) {
    %extracted = tensor.extract %arg1[] : tensor<i64>
    %0 = arith.index_cast %extracted : i64 to index
    %extracted_slice = tensor.extract_slice %arg0[%0] [9] [1] : tensor<12xf32> to tensor<9xf32>
    %1 = tensor.empty() : tensor<4x8x10xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<4x8x10xf32>) outs(%1 : tensor<4x8x10xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = linalg.index 1 : index
      %10 = linalg.index 2 : index
      %c1_3 = arith.constant 1 : index
      %11 = arith.addi %10, %c1_3 : index
      %12 = arith.cmpi sge, %9, %11 : index
      %cst_4 = arith.constant 0.000000e+00 : f32
      %13 = arith.select %12, %in, %cst_4 : f32
      linalg.yield %13 : f32
    } -> tensor<4x8x10xf32>
    %concat = tensor.concat dim(0) %arg0, %arg3, %arg4 : (tensor<12xf32>, tensor<12xf32>, tensor<2xf32>) -> tensor<26xf32>
    %cst = arith.constant dense<"0x000060BF000000BF0000C03E0000C0BE000080BF000040BF0000C03E000060BF000000BE000000BF000000BE000000BE000020BF0000603F000020BF0000803E0000C0BE0000003E0000C03E000060BF0000803E000080BE000040BF00000000000080BE000060BF0000803E0000803E0000403F0000003F0000C03E000080BE0000603F000080BF0000003E0000003E000080BE0000C0BE000000BF000040BF000060BF000000BF00000000000000BE0000003F0000C03E000000000000403F000040BF0000403F000080BF000000BE000080BF0000203F00000000000080BE000020BF000080BE0000C03E0000203F0000003E000080BF000000BF000000BF000080BF0000403F000080BE00000000000020BF000000BE000080BE0000C0BE0000C03E0000403F000040BF0000203F0000403F0000203F0000003F000020BF0000603F0000803F000000BE000080BE000040BF0000003E000000BF0000203F000000BF0000003E0000003E0000203F0000203F0000C03E0000403F000020BF000000000000403F0000203F000000BF000080BE0000803F000060BF000000BE0000C0BE0000003E0000803F0000203F0000403F000000000000003F000080BE000060BF000040BF0000403F0000803F000000BF000040BF0000803F0000C0BE000080BE0000803F000060BF0000203F000000000000803E000020BF0000C0BE0000203F0000803E000000BE0000C0BE000080BF000060BF000020BF000000BF0000803F000080BE000000BF000060BF00000000000000BE000080BE000060BF000000BF0000003E000000BE0000C0BE0000803F0000403F000040BF0000403F000040BF00000000000080BE000060BF000080BE0000003E000000BE000080BF000000BE000000BF000000BF0000203F0000803F0000803E0000603F000000BF000000BF0000C03E0000003E000080BE000000BF0000C0BE0000C0BE0000C03E0000C0BE000080BF000000BE000080BE0000603F0000803F0000803E000080BE0000403F0000203F0000803E0000403F0000603F000000BE0000003F000080BF000080BF000040BF0000203F000000BE0000603F000080BE0000C03E0000C03E000020BF0000003F0000803E0000803F0000803F0000403F0000003F0000003E0000003E000020BF0000C03E0000003E0000003E0000C03E000080BF0000C03E000040BF000000BE000000BE0000803E0000003F0000403F000060BF0000003E0000803F000080BE0000003F000060BF0000203F0000003E0000C03E000040BF000040BF000040BF0000803E000080BE000040BF0000003E000080BE0000203F0000003E0000403F0000403F0000203F0000203F0000603F000000BF0000003F000060BF000080BE000040BF0000C03E0000203F0000603F000080BE0000003F0000003E000000BF000040BF0000003E000080BE000080BE0000C0BE000060BF000080BE000020BF000040BF000080BE000060BF000080BF0000C03E0000003E0000C03E000080BF00000000000060BF000040BF0000603F000060BF0000403F0000003F000080BF0000C0BE00000000000000000000803F0000003E000000BE0000603F0000803E000000000000203F000020BF000040BF000080BF0000803F0000203F000000BE000080BE0000003F0000C03E0000003E000020BF0000C0BE000020BF0000003F0000C0BE0000C03E000000BF0000803E0000803E0000203F00000000000000000000003F0000C03E0000C03E000000BE000080BF0000403F"> : tensor<4x8x10xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %3 = tensor.empty() : tensor<8x10xf32>
    %4 = linalg.fill ins(%cst_0 : f32) outs(%3 : tensor<8x10xf32>) -> tensor<8x10xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map, #map1], iterator_types = ["reduction", "parallel", "parallel"]} ins(%2, %cst : tensor<4x8x10xf32>, tensor<4x8x10xf32>) outs(%4 : tensor<8x10xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %9 = arith.subf %in, %in_3 : f32
      %10 = arith.mulf %9, %9 : f32
      %11 = arith.addf %10, %out : f32
      linalg.yield %11 : f32
    } -> tensor<8x10xf32>
    %cst_1 = arith.constant dense<1.562500e-02> : tensor<8x10xf32>
    %6 = arith.mulf %5, %cst_1 : tensor<8x10xf32>
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c1_2 = arith.constant 1 : index
    %7 = scf.for %arg7 = %c1 to %c3 step %c1_2 iter_args(%arg8 = %concat) -> (tensor<26xf32>) {
      %reduced = linalg.reduce ins(%6 : tensor<8x10xf32>) outs(%arg5 : tensor<10xf32>) dimensions = [0] 
        (%in: f32, %init: f32) {
          %11 = arith.minimumf %in, %init : f32
          linalg.yield %11 : f32
        }
      %cst_3 = arith.constant dense<0.000000e+00> : tensor<10x9xf32>
      %9 = linalg.matmul indexing_maps = [#map2, #map3, #map4] ins(%6, %arg6 : tensor<8x10xf32>, tensor<8x9xf32>) outs(%cst_3 : tensor<10x9xf32>) -> tensor<10x9xf32>
      %cst_4 = arith.constant dense<1.250000e-01> : tensor<10x9xf32>
      %10 = arith.mulf %9, %cst_4 : tensor<10x9xf32>
      scf.yield %arg8 : tensor<26xf32>
    }
    %8 = math.fma %concat, %concat, %concat : tensor<26xf32>
    return %8, %7, %extracted_slice : tensor<26xf32>, tensor<26xf32>, tensor<9xf32>
  }
}

