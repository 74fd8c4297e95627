// RUN: tessera-fuzz --gradients --check %s

// A loop sums up the cotangents of the padded value that it captures.
func.func @main(%x: tensor<1x8x2xf64>, %k: tensor<3x2x2xf64>) -> tensor<1x8x2xf64> {
  %fill = arith.constant 0.0 : f64
  %p = tensor.pad %x low[0, 1, 0] high[0, 1, 0] {
  ^bb0(%i: index, %j: index, %c: index):
    tensor.yield %fill : f64
  } : tensor<1x8x2xf64> to tensor<1x10x2xf64>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : tensor<1x8x2xf64>
  %0 = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %zero) -> (tensor<1x8x2xf64>) {
    %1 = linalg.conv_1d_nwc_wcf ins(%p, %k : tensor<1x10x2xf64>, tensor<3x2x2xf64>)
        outs(%zero : tensor<1x8x2xf64>) -> tensor<1x8x2xf64>
    %2 = math.tanh %sum : tensor<1x8x2xf64>
    %3 = arith.addf %1, %2 : tensor<1x8x2xf64>
    scf.yield %3 : tensor<1x8x2xf64>
  }
  return %0 : tensor<1x8x2xf64>
}
