module {
  dist.process_mesh @m(shape = [3], dim_names = ["a0"])
  func.func @main() -> (tensor<5xi64> {dist.sharding = #dist.sharding<@m, [replicate]>}) {
    %cst = arith.constant dense<[-3, -3, -1, -2, 1]> : tensor<5xi64>
    %0 = ext.scan dim = 0 reverse ins(%cst : tensor<5xi64>) {
    ^bb0(%arg0: i64, %arg1: i64):
      ext.yield %arg1 : i64
    }
    return %0 : tensor<5xi64>
  }
}

