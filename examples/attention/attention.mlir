// Causal self-attention for a batch of sequences, with heads as a separate dimension, cut over 8
// devices.
// By hand: no collective. Scores, softmax and the weighted sum stay inside a head.
// Only the queries are annotated: keys, values and the result follow.

dist.process_mesh @pod(shape = [8], dim_names = ["tp"])

// Loops: batch, head, query, key (or feature), feature (or key).
#bhqe = affine_map<(b, h, q, k, e) -> (b, h, q, e)>
#bhke = affine_map<(b, h, q, k, e) -> (b, h, k, e)>
#bhqk = affine_map<(b, h, q, k, e) -> (b, h, q, k)>
#scores = affine_map<(b, h, q, k) -> (b, h, q, k)>

func.func @main(%q: tensor<4x16x64x32xf32> {dist.name = "q", dist.sharding = #dist.sharding<@pod, [shard(1)]>},
                %k: tensor<4x16x64x32xf32> {dist.name = "k"},
                %v: tensor<4x16x64x32xf32> {dist.name = "v"})
    -> (tensor<4x16x64x32xf32> {dist.name = "o"}) {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.176776695 : f32  // 1 / sqrt(32)
  %masked = arith.constant -1.0e9 : f32

  // a[b, h, q, k] = sum_e q[b, h, q, e] k[b, h, k, e]
  %e0 = tensor.empty() : tensor<4x16x64x64xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x16x64x64xf32>) -> tensor<4x16x64x64xf32>
  %a = linalg.generic {indexing_maps = [#bhqe, #bhke, #bhqk],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x16x64x32xf32>, tensor<4x16x64x32xf32>) outs(%f0 : tensor<4x16x64x64xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x16x64x64xf32>

  // A query sees its own and all earlier positions.
  %c = linalg.generic {indexing_maps = [#scores, #scores],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%a : tensor<4x16x64x64xf32>) outs(%e0 : tensor<4x16x64x64xf32>) {
  ^bb0(%s: f32, %out: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %seen = arith.cmpi ule, %j, %i : index
    %t = arith.mulf %s, %scale : f32
    %u = arith.select %seen, %t, %masked : f32
    linalg.yield %u : f32
  } -> tensor<4x16x64x64xf32>
  %p = linalg.softmax dimension(3) ins(%c : tensor<4x16x64x64xf32>) outs(%e0 : tensor<4x16x64x64xf32>) -> tensor<4x16x64x64xf32>

  // o[b, h, q, e] = sum_k p[b, h, q, k] v[b, h, k, e]
  %e1 = tensor.empty() : tensor<4x16x64x32xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x16x64x32xf32>) -> tensor<4x16x64x32xf32>
  %o = linalg.generic {indexing_maps = [#bhqk, #bhke, #bhqe],
                       iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
      ins(%p, %v : tensor<4x16x64x64xf32>, tensor<4x16x64x32xf32>) outs(%f1 : tensor<4x16x64x32xf32>) {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x16x64x32xf32>
  return %o : tensor<4x16x64x32xf32>
}
