// RUN: tessera-fuzz --gradients --check %s

func.func @main(%x: tensor<1x6x5x3xf64>, %k: tensor<2x3x3xf64>, %y: tensor<1x2x5x5xf64>, %l: tensor<3x2x2x2xf64>)
    -> (tensor<1x3x3x3xf64>, tensor<1x3x4x4xf64>) {
  %zero0 = arith.constant dense<0.0> : tensor<1x3x3x3xf64>
  %zero1 = arith.constant dense<0.0> : tensor<1x3x4x4xf64>
  %0 = linalg.depthwise_conv_2d_nhwc_hwc {strides = dense<[2, 1]> : tensor<2xi64>} ins(%x, %k : tensor<1x6x5x3xf64>, tensor<2x3x3xf64>)
      outs(%zero0 : tensor<1x3x3x3xf64>) -> tensor<1x3x3x3xf64>
  %1 = linalg.conv_2d_nchw_fchw ins(%y, %l : tensor<1x2x5x5xf64>, tensor<3x2x2x2xf64>)
      outs(%zero1 : tensor<1x3x4x4xf64>) -> tensor<1x3x4x4xf64>
  return %0, %1 : tensor<1x3x3x3xf64>, tensor<1x3x4x4xf64>
}
