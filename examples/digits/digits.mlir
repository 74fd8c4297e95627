// A two-layer classifier of handwritten digits, trained on 8 devices: the batch is cut over "dp", the hidden layer over
// "tp" (w0 on its columns, w1 on its rows). Only the weights and the batch are annotated; everything else follows.
//
// By hand:
//   @train     all-reduce over tp of the local 64x10 logits                        B = 2 560
//              all-reduce over dp of the gradients and the loss, in one:
//              w0 64x32, b0 32, w1 32x10, b1 10, loss 1 = 2 411 numbers            B = 9 644
//   @accuracy  all-reduce over tp of the local 180x10 logits                       B = 7 200
//              all-reduce over dp of the count                                     B = 4
//   @fit       the two of @train in each of 120 trips, then those of @accuracy
//
// digits-single.mlir is this file without the mesh and the annotations: the same program for one device.

dist.process_mesh @pod(shape = [2, 4], dim_names = ["dp", "tp"])

#bn = affine_map<(b, n) -> (b, n)>
#b = affine_map<(b, n) -> (b)>
#n = affine_map<(b, n) -> (n)>

// The contractions of the backward pass.
#rows_k = affine_map<(m, n, b) -> (b, m)>
#rows_n = affine_map<(m, n, b) -> (b, n)>
#weight = affine_map<(m, n, b) -> (m, n)>

/// One step of stochastic gradient descent on the mean cross-entropy, learning rate 0.5.
func.func @train(
    %w0: tensor<64x128xf32> {dist.name = "w0", dist.sharding = #dist.sharding<@pod, [replicate, shard(1)]>},
    %b0: tensor<128xf32> {dist.name = "b0"},
    %w1: tensor<128x10xf32> {dist.name = "w1", dist.sharding = #dist.sharding<@pod, [replicate, shard(0)]>},
    %b1: tensor<10xf32> {dist.name = "b1"},
    %images: tensor<128x64xi8> {dist.name = "images", dist.range = [0, 17], dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>},
    %labels: tensor<128xi32> {dist.name = "labels", dist.range = [0, 10], dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>})
    -> (tensor<f32> {dist.name = "loss"},
        tensor<64x128xf32> {dist.name = "new_w0", dist.feeds = 0},
        tensor<128xf32> {dist.name = "new_b0", dist.feeds = 1},
        tensor<128x10xf32> {dist.name = "new_w1", dist.feeds = 2},
        tensor<10xf32> {dist.name = "new_b1", dist.feeds = 3}) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %white = arith.constant 0.0625 : f32     // pixels are 0 .. 16
  %share = arith.constant 0.0078125 : f32  // 1 / batch

  // Forward: x = images / 16, h = relu(x w0 + b0), logits = h w1 + b1.
  %image_like = tensor.empty() : tensor<128x64xf32>
  %x = linalg.generic {indexing_maps = [#bn, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%images : tensor<128x64xi8>) outs(%image_like : tensor<128x64xf32>) {
  ^bb0(%pixel: i8, %out: f32):
    %f = arith.sitofp %pixel : i8 to f32
    %s = arith.mulf %f, %white : f32
    linalg.yield %s : f32
  } -> tensor<128x64xf32>

  %hidden_like = tensor.empty() : tensor<128x128xf32>
  %hidden_zero = linalg.fill ins(%zero : f32) outs(%hidden_like : tensor<128x128xf32>) -> tensor<128x128xf32>
  %xw = linalg.matmul ins(%x, %w0 : tensor<128x64xf32>, tensor<64x128xf32>) outs(%hidden_zero : tensor<128x128xf32>) -> tensor<128x128xf32>
  %h = linalg.generic {indexing_maps = [#bn, #n, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%xw, %b0 : tensor<128x128xf32>, tensor<128xf32>) outs(%hidden_like : tensor<128x128xf32>) {
  ^bb0(%m: f32, %bias: f32, %out: f32):
    %z = arith.addf %m, %bias : f32
    %r = arith.maximumf %z, %zero : f32
    linalg.yield %r : f32
  } -> tensor<128x128xf32>

  %logits_like = tensor.empty() : tensor<128x10xf32>
  %logits_zero = linalg.fill ins(%zero : f32) outs(%logits_like : tensor<128x10xf32>) -> tensor<128x10xf32>
  %hw = linalg.matmul ins(%h, %w1 : tensor<128x128xf32>, tensor<128x10xf32>) outs(%logits_zero : tensor<128x10xf32>) -> tensor<128x10xf32>
  %logits = linalg.generic {indexing_maps = [#bn, #n, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%hw, %b1 : tensor<128x10xf32>, tensor<10xf32>) outs(%logits_like : tensor<128x10xf32>) {
  ^bb0(%m: f32, %bias: f32, %out: f32):
    %z = arith.addf %m, %bias : f32
    linalg.yield %z : f32
  } -> tensor<128x10xf32>

  // Softmax cross-entropy: loss = mean over the batch of log(sum exp(logits - max)) - (logit of the label - max).
  %row_like = tensor.empty() : tensor<128xf32>
  %row_least = linalg.fill ins(%least : f32) outs(%row_like : tensor<128xf32>) -> tensor<128xf32>
  %row_zero = linalg.fill ins(%zero : f32) outs(%row_like : tensor<128xf32>) -> tensor<128xf32>
  %max = linalg.generic {indexing_maps = [#bn, #b], iterator_types = ["parallel", "reduction"]}
      ins(%logits : tensor<128x10xf32>) outs(%row_least : tensor<128xf32>) {
  ^bb0(%l: f32, %acc: f32):
    %m = arith.maximumf %acc, %l : f32
    linalg.yield %m : f32
  } -> tensor<128xf32>
  %exp = linalg.generic {indexing_maps = [#bn, #b, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%logits, %max : tensor<128x10xf32>, tensor<128xf32>) outs(%logits_like : tensor<128x10xf32>) {
  ^bb0(%l: f32, %m: f32, %out: f32):
    %d = arith.subf %l, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<128x10xf32>
  %sum = linalg.generic {indexing_maps = [#bn, #b], iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<128x10xf32>) outs(%row_zero : tensor<128xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %s = arith.addf %acc, %e : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %right = linalg.generic {indexing_maps = [#bn, #b, #b], iterator_types = ["parallel", "reduction"]}
      ins(%logits, %labels : tensor<128x10xf32>, tensor<128xi32>) outs(%row_zero : tensor<128xf32>) {
  ^bb0(%l: f32, %label: i32, %acc: f32):
    %i = linalg.index 1 : index
    %class = arith.index_cast %i : index to i32
    %hit = arith.cmpi eq, %class, %label : i32
    %v = arith.select %hit, %l, %zero : f32
    %s = arith.addf %acc, %v : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %scalar_like = tensor.empty() : tensor<f32>
  %scalar_zero = linalg.fill ins(%zero : f32) outs(%scalar_like : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [affine_map<(b) -> (b)>, affine_map<(b) -> (b)>, affine_map<(b) -> (b)>, affine_map<(b) -> ()>], iterator_types = ["reduction"]}
      ins(%max, %sum, %right : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) outs(%scalar_zero : tensor<f32>) {
  ^bb0(%m: f32, %s: f32, %l: f32, %acc: f32):
    %log = math.log %s : f32
    %lse = arith.addf %log, %m : f32
    %d = arith.subf %lse, %l : f32
    %mean = arith.mulf %d, %share : f32
    %a = arith.addf %acc, %mean : f32
    linalg.yield %a : f32
  } -> tensor<f32>

  // Backward. dlogits = (softmax - one-hot) / batch.
  %dlogits = linalg.generic {indexing_maps = [#bn, #b, #b, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum, %labels : tensor<128x10xf32>, tensor<128xf32>, tensor<128xi32>) outs(%logits_like : tensor<128x10xf32>) {
  ^bb0(%e: f32, %s: f32, %label: i32, %out: f32):
    %i = linalg.index 1 : index
    %class = arith.index_cast %i : index to i32
    %hit = arith.cmpi eq, %class, %label : i32
    %target = arith.select %hit, %one, %zero : f32
    %p = arith.divf %e, %s : f32
    %d = arith.subf %p, %target : f32
    %mean = arith.mulf %d, %share : f32
    linalg.yield %mean : f32
  } -> tensor<128x10xf32>

  // dw1 = h^T dlogits, db1 = sum of dlogits over the batch.
  %w1_like = tensor.empty() : tensor<128x10xf32>
  %w1_zero = linalg.fill ins(%zero : f32) outs(%w1_like : tensor<128x10xf32>) -> tensor<128x10xf32>
  %dw1 = linalg.contract indexing_maps = [#rows_k, #rows_n, #weight]
      ins(%h, %dlogits : tensor<128x128xf32>, tensor<128x10xf32>) outs(%w1_zero : tensor<128x10xf32>) -> tensor<128x10xf32>
  %b1_like = tensor.empty() : tensor<10xf32>
  %b1_zero = linalg.fill ins(%zero : f32) outs(%b1_like : tensor<10xf32>) -> tensor<10xf32>
  %db1 = linalg.reduce {arith.addf} ins(%dlogits : tensor<128x10xf32>) outs(%b1_zero : tensor<10xf32>) dimensions = [0]

  // dh = dlogits w1^T where the hidden unit was active.
  %dr = linalg.contract indexing_maps = [affine_map<(b, n, k) -> (b, k)>, affine_map<(b, n, k) -> (n, k)>, affine_map<(b, n, k) -> (b, n)>]
      ins(%dlogits, %w1 : tensor<128x10xf32>, tensor<128x10xf32>) outs(%hidden_zero : tensor<128x128xf32>) -> tensor<128x128xf32>
  %dh = linalg.generic {indexing_maps = [#bn, #bn, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%dr, %h : tensor<128x128xf32>, tensor<128x128xf32>) outs(%hidden_like : tensor<128x128xf32>) {
  ^bb0(%d: f32, %v: f32, %out: f32):
    %active = arith.cmpf ogt, %v, %zero : f32
    %r = arith.select %active, %d, %zero : f32
    linalg.yield %r : f32
  } -> tensor<128x128xf32>

  // dw0 = x^T dh, db0 = sum of dh over the batch.
  %w0_like = tensor.empty() : tensor<64x128xf32>
  %w0_zero = linalg.fill ins(%zero : f32) outs(%w0_like : tensor<64x128xf32>) -> tensor<64x128xf32>
  %dw0 = linalg.contract indexing_maps = [#rows_k, #rows_n, #weight]
      ins(%x, %dh : tensor<128x64xf32>, tensor<128x128xf32>) outs(%w0_zero : tensor<64x128xf32>) -> tensor<64x128xf32>
  %b0_like = tensor.empty() : tensor<128xf32>
  %b0_zero = linalg.fill ins(%zero : f32) outs(%b0_like : tensor<128xf32>) -> tensor<128xf32>
  %db0 = linalg.reduce {arith.addf} ins(%dh : tensor<128x128xf32>) outs(%b0_zero : tensor<128xf32>) dimensions = [0]

  // Parameters for the next step.
  %rate_w0 = arith.constant dense<0.5> : tensor<64x128xf32>
  %rate_b0 = arith.constant dense<0.5> : tensor<128xf32>
  %rate_w1 = arith.constant dense<0.5> : tensor<128x10xf32>
  %rate_b1 = arith.constant dense<0.5> : tensor<10xf32>
  %step_w0 = arith.mulf %dw0, %rate_w0 : tensor<64x128xf32>
  %step_b0 = arith.mulf %db0, %rate_b0 : tensor<128xf32>
  %step_w1 = arith.mulf %dw1, %rate_w1 : tensor<128x10xf32>
  %step_b1 = arith.mulf %db1, %rate_b1 : tensor<10xf32>
  %new_w0 = arith.subf %w0, %step_w0 : tensor<64x128xf32>
  %new_b0 = arith.subf %b0, %step_b0 : tensor<128xf32>
  %new_w1 = arith.subf %w1, %step_w1 : tensor<128x10xf32>
  %new_b1 = arith.subf %b1, %step_b1 : tensor<10xf32>
  return %loss, %new_w0, %new_b0, %new_w1, %new_b1
      : tensor<f32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<10xf32>
}

/// How many of the 360 held-out images the classifier names rightly.
func.func @accuracy(
    %w0: tensor<64x128xf32> {dist.name = "w0", dist.sharding = #dist.sharding<@pod, [replicate, shard(1)]>},
    %b0: tensor<128xf32> {dist.name = "b0"},
    %w1: tensor<128x10xf32> {dist.name = "w1", dist.sharding = #dist.sharding<@pod, [replicate, shard(0)]>},
    %b1: tensor<10xf32> {dist.name = "b1"},
    %images: tensor<360x64xi8> {dist.name = "images", dist.range = [0, 17], dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>},
    %labels: tensor<360xi32> {dist.name = "labels", dist.range = [0, 10], dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>})
    -> (tensor<i32> {dist.name = "right"}) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %least = arith.constant 0xFF800000 : f32
  %white = arith.constant 0.0625 : f32

  %image_like = tensor.empty() : tensor<360x64xf32>
  %x = linalg.generic {indexing_maps = [#bn, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%images : tensor<360x64xi8>) outs(%image_like : tensor<360x64xf32>) {
  ^bb0(%pixel: i8, %out: f32):
    %f = arith.sitofp %pixel : i8 to f32
    %s = arith.mulf %f, %white : f32
    linalg.yield %s : f32
  } -> tensor<360x64xf32>
  %hidden_like = tensor.empty() : tensor<360x128xf32>
  %hidden_zero = linalg.fill ins(%zero : f32) outs(%hidden_like : tensor<360x128xf32>) -> tensor<360x128xf32>
  %xw = linalg.matmul ins(%x, %w0 : tensor<360x64xf32>, tensor<64x128xf32>) outs(%hidden_zero : tensor<360x128xf32>) -> tensor<360x128xf32>
  %h = linalg.generic {indexing_maps = [#bn, #n, #bn], iterator_types = ["parallel", "parallel"]}
      ins(%xw, %b0 : tensor<360x128xf32>, tensor<128xf32>) outs(%hidden_like : tensor<360x128xf32>) {
  ^bb0(%m: f32, %bias: f32, %out: f32):
    %z = arith.addf %m, %bias : f32
    %r = arith.maximumf %z, %zero : f32
    linalg.yield %r : f32
  } -> tensor<360x128xf32>
  %logits_like = tensor.empty() : tensor<360x10xf32>
  %logits_zero = linalg.fill ins(%zero : f32) outs(%logits_like : tensor<360x10xf32>) -> tensor<360x10xf32>
  %hw = linalg.matmul ins(%h, %w1 : tensor<360x128xf32>, tensor<128x10xf32>) outs(%logits_zero : tensor<360x10xf32>) -> tensor<360x10xf32>

  // The first class with the greatest logit.
  %best_like = tensor.empty() : tensor<360xf32>
  %best_least = linalg.fill ins(%least : f32) outs(%best_like : tensor<360xf32>) -> tensor<360xf32>
  %guess_like = tensor.empty() : tensor<360xi32>
  %guess_none = linalg.fill ins(%none : i32) outs(%guess_like : tensor<360xi32>) -> tensor<360xi32>
  %best:2 = linalg.generic {indexing_maps = [#bn, #n, #b, #b], iterator_types = ["parallel", "reduction"]}
      ins(%hw, %b1 : tensor<360x10xf32>, tensor<10xf32>) outs(%best_least, %guess_none : tensor<360xf32>, tensor<360xi32>) {
  ^bb0(%m: f32, %bias: f32, %most: f32, %guess: i32):
    %i = linalg.index 1 : index
    %class = arith.index_cast %i : index to i32
    %logit = arith.addf %m, %bias : f32
    %more = arith.cmpf ogt, %logit, %most : f32
    %v = arith.select %more, %logit, %most : f32
    %g = arith.select %more, %class, %guess : i32
    linalg.yield %v, %g : f32, i32
  } -> (tensor<360xf32>, tensor<360xi32>)

  %count_like = tensor.empty() : tensor<i32>
  %count_none = linalg.fill ins(%none : i32) outs(%count_like : tensor<i32>) -> tensor<i32>
  %right = linalg.generic {indexing_maps = [affine_map<(b) -> (b)>, affine_map<(b) -> (b)>, affine_map<(b) -> ()>], iterator_types = ["reduction"]}
      ins(%best#1, %labels : tensor<360xi32>, tensor<360xi32>) outs(%count_none : tensor<i32>) {
  ^bb0(%guess: i32, %label: i32, %acc: i32):
    %hit = arith.cmpi eq, %guess, %label : i32
    %v = arith.select %hit, %one, %none : i32
    %s = arith.addi %acc, %v : i32
    linalg.yield %s : i32
  } -> tensor<i32>
  return %right : tensor<i32>
}

/// All of it in one program: 120 steps in a loop that stays a loop, then the test.
func.func @fit(
    %w0: tensor<64x128xf32> {dist.name = "w0", dist.sharding = #dist.sharding<@pod, [replicate, shard(1)]>},
    %b0: tensor<128xf32> {dist.name = "b0"},
    %w1: tensor<128x10xf32> {dist.name = "w1", dist.sharding = #dist.sharding<@pod, [replicate, shard(0)]>},
    %b1: tensor<10xf32> {dist.name = "b1"},
    %images: tensor<120x128x64xi8> {dist.name = "images", dist.range = [0, 17], dist.sharding = #dist.sharding<@pod, [shard(1), replicate]>},
    %labels: tensor<120x128xi32> {dist.name = "labels", dist.range = [0, 10], dist.sharding = #dist.sharding<@pod, [shard(1), replicate]>},
    %test_images: tensor<360x64xi8> {dist.name = "test_images", dist.range = [0, 17], dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>},
    %test_labels: tensor<360xi32> {dist.name = "test_labels", dist.range = [0, 10], dist.sharding = #dist.sharding<@pod, [shard(0), replicate]>})
    -> (tensor<120xf32> {dist.name = "losses"}, tensor<i32> {dist.name = "right"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c120 = arith.constant 120 : index
  %losses_like = tensor.empty() : tensor<120xf32>
  %fit:5 = scf.for %step = %c0 to %c120 step %c1
      iter_args(%losses = %losses_like, %v0 = %w0, %a0 = %b0, %v1 = %w1, %a1 = %b1)
      -> (tensor<120xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<10xf32>) {
    %batch = tensor.extract_slice %images[%step, 0, 0] [1, 128, 64] [1, 1, 1] : tensor<120x128x64xi8> to tensor<128x64xi8>
    %classes = tensor.extract_slice %labels[%step, 0] [1, 128] [1, 1] : tensor<120x128xi32> to tensor<128xi32>
    %next:5 = func.call @train(%v0, %a0, %v1, %a1, %batch, %classes)
        : (tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<10xf32>, tensor<128x64xi8>, tensor<128xi32>)
        -> (tensor<f32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<10xf32>)
    %loss = tensor.expand_shape %next#0 [] output_shape [1] : tensor<f32> into tensor<1xf32>
    %curve = tensor.insert_slice %loss into %losses[%step] [1] [1] : tensor<1xf32> into tensor<120xf32>
    scf.yield %curve, %next#1, %next#2, %next#3, %next#4
        : tensor<120xf32>, tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<10xf32>
  }
  %right = func.call @accuracy(%fit#1, %fit#2, %fit#3, %fit#4, %test_images, %test_labels)
      : (tensor<64x128xf32>, tensor<128xf32>, tensor<128x10xf32>, tensor<10xf32>, tensor<360x64xi8>, tensor<360xi32>) -> tensor<i32>
  return %fit#0, %right : tensor<120xf32>, tensor<i32>
}
