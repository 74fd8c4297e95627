module {
  dist.process_mesh @m(shape = [5, 2, 1], dim_names = ["a0", "a1", "a2"])
  func.func @main(%arg0: tensor<4x12x6xi64> {dist.range = [-4, 5]}, %arg1: tensor<4x6x1xi64> {dist.range = [-4, 5]}) -> tensor<4x12x1xi64> {
    %cst = arith.constant dense<[[[2], [2], [2], [-1], [3], [3], [3], [0], [0], [-2], [2], [2]], [[0], [-1], [1], [-2], [-2], [0], [-2], [3], [-3], [-1], [-2], [-2]], [[-1], [1], [1], [2], [2], [3], [1], [0], [0], [0], [-3], [1]], [[0], [2], [0], [-1], [-2], [2], [-2], [1], [-2], [0], [1], [3]]]> : tensor<4x12x1xi64>
    %0 = linalg.batch_matmul ins(%arg0, %arg1 : tensor<4x12x6xi64>, tensor<4x6x1xi64>) outs(%cst : tensor<4x12x1xi64>) -> tensor<4x12x1xi64>
    return %0 : tensor<4x12x1xi64>
  }
}

