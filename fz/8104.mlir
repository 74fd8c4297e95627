module {
  dist.process_mesh @m(shape = [1], dim_names = ["a0"])
  func.func @main(%arg0: tensor<3x6x16x5xf32> {dist.sharding = #dist.sharding<@m, [?]>}) -> (tensor<3x6x16x5xf32> {dist.sharding = #dist.sharding<@m, dims = [[], [], ["a0"], []]>}, tensor<3x6x16x5xf32> {dist.sharding = #dist.sharding<@m, dims = [[], [], [], []]>}) {
    %0 = math.erf %arg0 : tensor<3x6x16x5xf32>
    %1 = math.fma %arg0, %arg0, %arg0 : tensor<3x6x16x5xf32>
    %2 = arith.negf %1 : tensor<3x6x16x5xf32>
    %3 = arith.mulf %1, %0 : tensor<3x6x16x5xf32>
    return %3, %2 : tensor<3x6x16x5xf32>, tensor<3x6x16x5xf32>
  }
}

