#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
module {
  dist.process_mesh @m(shape = [6, 2, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<1x14xf32> {dist.sharding = #dist.sharding<@m, [?, shard(0), partial(avg)]>}, %arg1: tensor<14xf32> {dist.sharding = #dist.sharding<@m, [replicate, shard(0), replicate]>}, %arg2: tensor<1x1xi32> {dist.range = [1, 4]}, %arg3: tensor<8xf32>, %arg4: tensor<5x8x3xf32>) -> (tensor<14xf32>, tensor<1x1xi32>) {
    %cst = arith.constant dense<-1.000000e+00> : tensor<1xf32>
    %0 = linalg.matvec ins(%arg0, %arg1 : tensor<1x14xf32>, tensor<14xf32>) outs(%cst : tensor<1xf32>) -> tensor<1xf32>
    %cst_0 = arith.constant dense<"0x0000803F000000BF000040BF000040BF0000C0BE0000403F000080BE0000203F000000BF0000003E0000803E000080BF0000003F000080BE000000BE000000000000603F000000BF0000803F000000BE0000803E000040BF000080BE0000C0BE0000403F0000C0BE000020BF000000BE0000603F000000BF0000803F0000603F0000C0BE0000603F0000C0BE000080BF000080BE0000C0BE000040BF0000003F0000C03E00000000000060BF000060BF000020BF0000203F000060BF000020BF000000BE0000403F000000BE0000003F0000403F0000C0BE0000C0BE0000003E000060BF0000C0BE0000C0BE000020BF0000203F0000803E000000BF000020BF000080BE0000C03E00000000000000BF000080BF000000000000003E000060BF0000203F0000803F0000803F000040BF0000C03E0000203F000000BF0000203F0000403F0000003F000060BF0000C0BE000080BE0000C0BE0000003E0000003F000080BE000020BF000080BE000020BF000080BF0000203F0000003E0000C03E000000BE000000BF0000203F000080BE000060BF000020BF0000803E0000C03E0000C03E000000BE000000BF0000003E0000C03E0000C0BE000000BE0000C0BE0000603F000040BF000060BF0000C0BE000080BE00000000000000BE0000C0BE0000603F000040BF000040BF0000003F000040BF000000BE000020BF000000000000803E0000003E0000803E0000403F0000203F000000000000C03E0000C0BE000080BF0000803F000040BF0000003F000000BF000080BE0000003E000080BF0000203F0000C03E000080BF000040BF000020BF0000603F0000003F000080BF000080BF000060BF0000403F000060BF0000803F0000203F0000000000000000000000BE000000BE0000803F000000BE000080BE0000403F000000000000403F0000803E000000BF000020BF0000003F0000803F0000803F0000003F000020BF000020BF000060BF000000000000203F0000403F0000403F000000BE0000003F0000003F000040BF0000803F000020BF0000203F000000BE000000BF000000BF000000000000C0BE0000403F0000603F0000203F0000803F0000403F0000803F000060BF000000BE0000603F0000C0BE000080BE0000003F0000203F0000003F000080BE0000003E000020BF000060BF000060BF000080BE000000BF000000BF0000C03E0000C03E0000003E0000C03E0000003F0000003F0000603F000080BE000040BF000040BF0000C0BE0000003F000020BF000020BF0000603F000080BE0000603F0000803F0000C0BE0000003F0000603F000080BF0000803E0000803F0000403F000020BF0000203F0000603F0000803F000040BF000000000000403F000040BF000060BF000020BF0000003E000060BF0000803E0000803F000000BF0000203F000080BE000000BF000080BF000020BF000000BE0000C03E0000C03E"> : tensor<4x11x2x3xf32>
    %cst_1 = arith.constant 0x7F800000 : f32
    %1 = tensor.empty() : tensor<4x10x2x3xf32>
    %2 = linalg.fill ins(%cst_1 : f32) outs(%1 : tensor<4x10x2x3xf32>) -> tensor<4x10x2x3xf32>
    %3 = tensor.empty() : tensor<2x1xf32>
    %4 = linalg.pooling_nhwc_min {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%cst_0, %3 : tensor<4x11x2x3xf32>, tensor<2x1xf32>) outs(%2 : tensor<4x10x2x3xf32>) -> tensor<4x10x2x3xf32>
    %cst_2 = arith.constant dense<[[[[6.250000e-01, -6.250000e-01, -8.750000e-01]]], [[[0.000000e+00, 1.000000e+00, 5.000000e-01]]]]> : tensor<2x1x1x3xf32>
    %inserted_slice = tensor.insert_slice %cst_2 into %4[0, 9, 1, 0] [2, 1, 1, 3] [1, 1, 1, 1] : tensor<2x1x1x3xf32> into tensor<4x10x2x3xf32>
    %collapsed = tensor.collapse_shape %arg0 [[0, 1]] : tensor<1x14xf32> into tensor<14xf32>
    %5 = dist.shard_tensor %collapsed, #dist.sharding<@m, [shard(0), replicate, replicate]> : tensor<14xf32>
    %extracted_slice = tensor.extract_slice %collapsed[10] [4] [1] : tensor<14xf32> to tensor<4xf32>
    %extracted_slice_3 = tensor.extract_slice %collapsed[0] [10] [1] : tensor<14xf32> to tensor<10xf32>
    %concat = tensor.concat dim(0) %extracted_slice, %extracted_slice_3 : (tensor<4xf32>, tensor<10xf32>) -> tensor<14xf32>
    %6 = dist.shard_tensor %concat, #dist.sharding<@m, [shard(0), shard(0)]> : tensor<14xf32>
    %c2_i32 = arith.constant 2 : i32
    %7:2 = scf.while (%arg5 = %arg2, %arg6 = %concat) : (tensor<1x1xi32>, tensor<14xf32>) -> (tensor<1x1xi32>, tensor<14xf32>) {
      %cst_4 = arith.constant dense<0> : tensor<i32>
      %9 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg5 : tensor<1x1xi32>) outs(%cst_4 : tensor<i32>) {
      ^bb0(%in: i32, %out: i32):
        %11 = arith.addi %out, %in : i32
        linalg.yield %11 : i32
      } -> tensor<i32>
      %extracted = tensor.extract %9[] : tensor<i32>
      %10 = arith.cmpi slt, %extracted, %c2_i32 : i32
      scf.condition(%10) %arg5, %arg6 : tensor<1x1xi32>, tensor<14xf32>
    } do {
    ^bb0(%arg5: tensor<1x1xi32>, %arg6: tensor<14xf32>):
      %9 = tensor.empty() : tensor<5x4x8xf32>
      %broadcasted = linalg.broadcast ins(%arg3 : tensor<8xf32>) outs(%9 : tensor<5x4x8xf32>) dimensions = [0, 1] 
      %cst_4 = arith.constant dense<0.000000e+00> : tensor<5x4x3xf32>
      %10 = linalg.batch_matmul ins(%broadcasted, %arg4 : tensor<5x4x8xf32>, tensor<5x8x3xf32>) outs(%cst_4 : tensor<5x4x3xf32>) -> tensor<5x4x3xf32>
      %11 = arith.addi %arg5, %arg5 : tensor<1x1xi32>
      scf.yield %11, %arg6 : tensor<1x1xi32>, tensor<14xf32>
    }
    %8 = dist.shard_tensor %7#1, #dist.sharding<@m, [shard(0, order = 1), ?, shard(0, order = 0)]> : tensor<14xf32>
    return %8, %7#0 : tensor<14xf32>, tensor<1x1xi32>
  }
}

