// RUN: tessera-fuzz --gradients --check %s

// Stride and dilation, separate and together; elements outside of all windows have cotangent zero.
func.func @main(%x: tensor<2x14x2xf64>, %k: tensor<3x2x3xf64>) -> (tensor<2x10x3xf64>, tensor<2x5x3xf64>, tensor<2x3x3xf64>) {
  %zero0 = arith.constant dense<0.0> : tensor<2x10x3xf64>
  %zero1 = arith.constant dense<0.0> : tensor<2x5x3xf64>
  %zero2 = arith.constant dense<0.0> : tensor<2x3x3xf64>
  %0 = linalg.conv_1d_nwc_wcf {dilations = dense<2> : tensor<1xi64>} ins(%x, %k : tensor<2x14x2xf64>, tensor<3x2x3xf64>)
      outs(%zero0 : tensor<2x10x3xf64>) -> tensor<2x10x3xf64>
  %1 = linalg.conv_1d_nwc_wcf {strides = dense<2> : tensor<1xi64>, dilations = dense<2> : tensor<1xi64>}
      ins(%x, %k : tensor<2x14x2xf64>, tensor<3x2x3xf64>) outs(%zero1 : tensor<2x5x3xf64>) -> tensor<2x5x3xf64>
  %2 = linalg.conv_1d_nwc_wcf {strides = dense<3> : tensor<1xi64>, dilations = dense<2> : tensor<1xi64>}
      ins(%x, %k : tensor<2x14x2xf64>, tensor<3x2x3xf64>) outs(%zero2 : tensor<2x3x3xf64>) -> tensor<2x3x3xf64>
  return %0, %1, %2 : tensor<2x10x3xf64>, tensor<2x5x3xf64>, tensor<2x3x3xf64>
}
