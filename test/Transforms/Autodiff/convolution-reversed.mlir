// RUN: tessera-fuzz --gradients --check %s

// A true convolution: the image or the kernel is read in reverse, whole, with strides, and beside another window.
#image = affine_map<(i, k) -> (i - k + 2)>
#kernel = affine_map<(i, k) -> (-k + 2)>
#steps = affine_map<(i, k) -> (i * 2 - k * 2 + 4)>
#back = affine_map<(i, k) -> (-i + k + 5)>
#window = affine_map<(i, k) -> (i + k)>
#twice = affine_map<(i, k) -> (i * 2 + k)>
#i = affine_map<(i, k) -> (i)>
#k = affine_map<(i, k) -> (k)>
func.func @main(%x: tensor<8xf64>, %w: tensor<3xf64>) -> (tensor<6xf64>, tensor<6xf64>, tensor<2xf64>, tensor<6xf64>, tensor<3xf64>, tensor<3xf64>) {
  %zero6 = arith.constant dense<0.0> : tensor<6xf64>
  %zero2 = arith.constant dense<0.0> : tensor<2xf64>
  %zero3 = arith.constant dense<0.0> : tensor<3xf64>
  %0 = linalg.generic {indexing_maps = [#image, #k, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<8xf64>, tensor<3xf64>) outs(%zero6 : tensor<6xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<6xf64>
  %1 = linalg.generic {indexing_maps = [#window, #kernel, #k, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w, %zero3 : tensor<8xf64>, tensor<3xf64>, tensor<3xf64>) outs(%zero6 : tensor<6xf64>) {
  ^bb0(%a: f64, %b: f64, %extent: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<6xf64>
  %2 = linalg.generic {indexing_maps = [#steps, #k, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<8xf64>, tensor<3xf64>) outs(%zero2 : tensor<2xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<2xf64>
  %3 = linalg.generic {indexing_maps = [#back, #k, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<8xf64>, tensor<3xf64>) outs(%zero6 : tensor<6xf64>) {
  ^bb0(%a: f64, %b: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %n = linalg.index 1 : index
    %m = arith.index_cast %n : index to i64
    %f = arith.sitofp %m : i64 to f64
    %q = arith.mulf %p, %f : f64
    %s = arith.addf %acc, %q : f64
    linalg.yield %s : f64
  } -> tensor<6xf64>
  %4 = linalg.generic {indexing_maps = [#twice, #kernel, #k, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w, %zero3 : tensor<8xf64>, tensor<3xf64>, tensor<3xf64>) outs(%zero3 : tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64, %extent: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %acc, %p : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  %5 = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i * 2 - k + 2)>, #kernel, #k, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w, %zero3 : tensor<8xf64>, tensor<3xf64>, tensor<3xf64>) outs(%zero3 : tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64, %extent: f64, %acc: f64):
    %p = arith.mulf %a, %b : f64
    %t = math.tanh %p : f64
    %s = arith.addf %acc, %t : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  return %0, %1, %2, %3, %4, %5 : tensor<6xf64>, tensor<6xf64>, tensor<2xf64>, tensor<6xf64>, tensor<3xf64>, tensor<3xf64>
}
