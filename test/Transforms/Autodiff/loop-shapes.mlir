// RUN: tessera-fuzz --gradients --check %s

// Loops with other bounds and steps, with zero trips, nested, with scalars, that exchange their
// carries, that read the same weights in every iteration, and with overlapping slices.
func.func @main(%x: tensor<3xf64>, %w: tensor<3x3xf64>, %v: tensor<9xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<f64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f64
  %zero = arith.constant dense<0.0> : tensor<3xf64>
  %a = scf.for %i = %c1 to %c8 step %c3 iter_args(%h = %x) -> (tensor<3xf64>) {
    %p = linalg.matvec ins(%w, %h : tensor<3x3xf64>, tensor<3xf64>) outs(%x : tensor<3xf64>) -> tensor<3xf64>
    %s = math.sin %p : tensor<3xf64>
    scf.yield %s : tensor<3xf64>
  }
  %b = scf.for %i = %c3 to %c1 step %c1 iter_args(%h = %x) -> (tensor<3xf64>) {
    %s = math.exp %h : tensor<3xf64>
    scf.yield %s : tensor<3xf64>
  }
  %c = scf.for %i = %c0 to %c2 step %c1 iter_args(%h = %x) -> (tensor<3xf64>) {
    %inner = scf.for %j = %c0 to %c3 step %c1 iter_args(%g = %h) -> (tensor<3xf64>) {
      %row = tensor.extract_slice %w[%j, 0] [1, 3] [1, 1] : tensor<3x3xf64> to tensor<3xf64>
      %p = arith.mulf %g, %row : tensor<3xf64>
      %s = math.cos %p : tensor<3xf64>
      scf.yield %s : tensor<3xf64>
    }
    %t = arith.mulf %inner, %h : tensor<3xf64>
    scf.yield %t : tensor<3xf64>
  }
  %d = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %one) -> (f64) {
    %e = tensor.extract %x[%i] : tensor<3xf64>
    %p = arith.mulf %h, %e : f64
    %s = math.sin %p : f64
    %t = arith.addf %s, %h : f64
    scf.yield %t : f64
  }
  %dt = tensor.from_elements %d : tensor<f64>
  %e:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%g = %x, %h = %zero) -> (tensor<3xf64>, tensor<3xf64>) {
    %s = math.sin %g : tensor<3xf64>
    %t = arith.addf %s, %h : tensor<3xf64>
    scf.yield %t, %g : tensor<3xf64>, tensor<3xf64>
  }
  %f = scf.for %i = %c0 to %c7 step %c2 iter_args(%h = %x) -> (tensor<3xf64>) {
    %part = tensor.extract_slice %v[%i] [3] [1] : tensor<9xf64> to tensor<3xf64>
    %p = arith.mulf %h, %part : tensor<3xf64>
    scf.yield %p : tensor<3xf64>
  }
  return %a, %b, %c, %dt, %e#0, %e#1, %f : tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<f64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>
}
