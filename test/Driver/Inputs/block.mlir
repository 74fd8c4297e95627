// Two layers with a residual, a softmax over rows, and sizes that few device counts divide.
#rows = affine_map<(b, n) -> (b, n)>
#bias = affine_map<(b, n) -> (n)>
#row = affine_map<(b, n) -> (b)>

func.func @main(%x: tensor<24x36xf32> {dist.name = "x"}, %w0: tensor<36x56xf32> {dist.name = "w0"},
                %b0: tensor<56xf32> {dist.name = "b0"}, %w1: tensor<56x36xf32> {dist.name = "w1"})
    -> (tensor<24x36xf32> {dist.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<24x56xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<24x56xf32>) -> tensor<24x56xf32>
  %m0 = linalg.matmul ins(%x, %w0 : tensor<24x36xf32>, tensor<36x56xf32>) outs(%f0 : tensor<24x56xf32>) -> tensor<24x56xf32>
  %h = linalg.generic {indexing_maps = [#rows, #bias, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%m0, %b0 : tensor<24x56xf32>, tensor<56xf32>) outs(%e0 : tensor<24x56xf32>) {
  ^bb0(%m: f32, %b: f32, %out: f32):
    %s = arith.addf %m, %b : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<24x56xf32>
  %e1 = tensor.empty() : tensor<24x36xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<24x36xf32>) -> tensor<24x36xf32>
  %m1 = linalg.matmul ins(%h, %w1 : tensor<24x56xf32>, tensor<56x36xf32>) outs(%f1 : tensor<24x36xf32>) -> tensor<24x36xf32>
  %a = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%m1, %x : tensor<24x36xf32>, tensor<24x36xf32>) outs(%e1 : tensor<24x36xf32>) {
  ^bb0(%m: f32, %r: f32, %out: f32):
    %s = arith.addf %m, %r : f32
    linalg.yield %s : f32
  } -> tensor<24x36xf32>
  %low = arith.constant 0xFF800000 : f32
  %e2 = tensor.empty() : tensor<24xf32>
  %f2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<24xf32>) -> tensor<24xf32>
  %max = linalg.generic {indexing_maps = [#rows, #row], iterator_types = ["parallel", "reduction"]}
      ins(%a : tensor<24x36xf32>) outs(%f2 : tensor<24xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.maximumf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<24xf32>
  %y = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%a, %max : tensor<24x36xf32>, tensor<24xf32>) outs(%e1 : tensor<24x36xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %s = arith.subf %in, %m : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<24x36xf32>
  return %y : tensor<24x36xf32>
}
