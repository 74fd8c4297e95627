module {
  dist.process_mesh @m(shape = [1, 6], dim_names = ["a0", "a1"])
  func.func @main(%arg0: tensor<9x3xbf16>) -> (tensor<9x3xbf16> {dist.sharding = #dist.sharding<@m, dims = [["a0", "a1"], []]>}, tensor<11x3xbf16> {dist.sharding = #dist.sharding<@m, [shard(0), shard(-1)]>}) {
    %padded = tensor.pad %arg0 low[0, 0] high[0, 0] {
    ^bb0(%arg1: index, %arg2: index):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %2 = arith.muli %arg1, %c1 : index
      %3 = arith.addi %c0, %2 : index
      %c2 = arith.constant 2 : index
      %4 = arith.muli %arg2, %c2 : index
      %5 = arith.addi %3, %4 : index
      %6 = arith.index_cast %5 : index to i32
      %7 = arith.sitofp %6 : i32 to bf16
      tensor.yield %7 : bf16
    } : tensor<9x3xbf16> to tensor<9x3xbf16>
    %0 = tensor.empty() : tensor<9x3xbf16>
    %1 = linalg.softmax dimension(0) ins(%arg0 : tensor<9x3xbf16>) outs(%0 : tensor<9x3xbf16>) -> tensor<9x3xbf16>
    %cst = arith.constant 3.000000e+00 : bf16
    %padded_0 = tensor.pad %padded low[0, 0] high[2, 1] {
    ^bb0(%arg1: index, %arg2: index):
      tensor.yield %cst : bf16
    } : tensor<9x3xbf16> to tensor<11x4xbf16>
    %extracted_slice = tensor.extract_slice %padded_0[0, 1] [11, 3] [1, 1] : tensor<11x4xbf16> to tensor<11x3xbf16>
    %extracted_slice_1 = tensor.extract_slice %1[0, 1] [9, 2] [1, 1] : tensor<9x3xbf16> to tensor<9x2xbf16>
    %extracted_slice_2 = tensor.extract_slice %1[0, 0] [9, 1] [1, 1] : tensor<9x3xbf16> to tensor<9x1xbf16>
    %concat = tensor.concat dim(1) %extracted_slice_1, %extracted_slice_2 : (tensor<9x2xbf16>, tensor<9x1xbf16>) -> tensor<9x3xbf16>
    return %concat, %extracted_slice : tensor<9x3xbf16>, tensor<11x3xbf16>
  }
}

