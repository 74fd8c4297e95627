// RUN: tessera-opt %s --dist-normalize --verify-diagnostics

// expected-error@+1 {{'f' calls itself; recursion is not supported, write a loop}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
