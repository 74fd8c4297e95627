module {
  dist.process_mesh @m(shape = [8], dim_names = ["a0"])
  func.func @main(%arg0: tensor<1x13x11xf64> {dist.sharding = #dist.sharding<@m, [shard(1)]>}) -> (tensor<1x1x1x13x11xf64> {dist.sharding = #dist.sharding<@m, dims = [[], [], [], [], ["a0"]]>}) {
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2, 3], [4]] output_shape [1, 1, 1, 13, 11] : tensor<1x13x11xf64> into tensor<1x1x1x13x11xf64>
    return %expanded : tensor<1x1x1x13x11xf64>
  }
}

