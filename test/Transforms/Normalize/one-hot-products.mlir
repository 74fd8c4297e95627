// Products with one-hot operands are look-ups, their derivatives scatters: no kernel iterates over the table.
// RUN: tessera-opt %s --dist-normalize | FileCheck %s
// RUN: tessera explain %s --function rows | FileCheck %s --check-prefix=ROWS
// RUN: tessera-opt %s --dist-normalize --dist-propagate --dist-sink-partials --dist-insert-reshards --dist-plan-reshards --dist-partition \
// RUN:   --codegen-prepare | FileCheck %s --check-prefix=CODE
// RUN: tessera run %s --function rows --check --no-cache
// RUN: tessera run %s --function uneven --check --no-cache
// RUN: tessera run %s --function transposed --check --no-cache
// RUN: tessera run %s --function selected --check --no-cache
// RUN: tessera run %s --function gated --check --no-cache
// RUN: tessera run %s --function narrow --check --no-cache
// RUN: tessera run %s --function two_ops --check --no-cache
// RUN: tessera run %s --function dispatched --check --no-cache
// RUN: tessera run %s --function gate_gradient --check --no-cache

dist.process_mesh @line(shape = [4], dim_names = ["d"])

#ij = affine_map<(d0, d1) -> (d0, d1)>
#i = affine_map<(d0, d1) -> (d0)>
#tec = affine_map<(e, c, d, t) -> (t, e, c)>
#td = affine_map<(e, c, d, t) -> (t, d)>
#ecd = affine_map<(e, c, d, t) -> (e, c, d)>
#tec2 = affine_map<(t, e, c, d) -> (t, e, c)>
#td2 = affine_map<(t, e, c, d) -> (t, d)>
#ecd2 = affine_map<(t, e, c, d) -> (e, c, d)>

// The table is cut by rows: each device looks up its own, and sums move.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT: linalg.matmul
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %{{.*}} : tensor<64x6xf32>, tensor<20x1xi32>)
// CHECK: %[[HERE:.*]] = arith.cmpi eq
// CHECK: arith.select %[[HERE]], %{{.*}}, %{{.*}} : f32
// CHECK: return %[[Y]]
// ROWS: reduce_scatter
// ROWS-NOT: gather
// CODE-LABEL: func.func @rows(
// CODE: iterator_types = ["parallel", "parallel"]}
// CODE: tensor.extract %arg1
func.func @rows(%ids: tensor<20xi32>, %table: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<20x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %hot = call @one_hot(%ids) : (tensor<20xi32>) -> tensor<20x64xf32>
  %zero = arith.constant dense<0.0> : tensor<20x6xf32>
  %y = linalg.matmul ins(%hot, %table : tensor<20x64xf32>, tensor<64x6xf32>) outs(%zero : tensor<20x6xf32>) -> tensor<20x6xf32>
  return %y : tensor<20x6xf32>
}

// As from JAX: an iota is compared, the result converted. Some indices are beyond the table.
func.func @one_hot(%ids: tensor<20xi32>) -> tensor<20x64xf32> {
  %e = tensor.empty() : tensor<64xi32>
  %iota = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<64xi32>) {
  ^bb0(%out: i32):
    %v = linalg.index 0 : index
    %n = arith.index_cast %v : index to i32
    linalg.yield %n : i32
  } -> tensor<64xi32>
  %c = tensor.expand_shape %ids [[0, 1]] output_shape [20, 1] : tensor<20xi32> into tensor<20x1xi32>
  %b = tensor.empty() : tensor<20x64xi1>
  %same = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d1)>, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%c, %iota : tensor<20x1xi32>, tensor<64xi32>) outs(%b : tensor<20x64xi1>) {
  ^bb0(%id: i32, %n: i32, %out: i1):
    %mask = arith.constant 127 : i32
    %some = arith.andi %id, %mask : i32
    %hit = arith.cmpi eq, %some, %n : i32
    linalg.yield %hit : i1
  } -> tensor<20x64xi1>
  %f = tensor.empty() : tensor<20x64xf32>
  %hot = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%same : tensor<20x64xi1>) outs(%f : tensor<20x64xf32>) {
  ^bb0(%hit: i1, %out: f32):
    %x = arith.uitofp %hit : i1 to f32
    linalg.yield %x : f32
  } -> tensor<20x64xf32>
  return %hot : tensor<20x64xf32>
}

// 64 rows on 3 devices: the padding adds nothing.
// CODE-LABEL: func.func @uneven(
// CODE: iterator_types = ["parallel", "parallel"]}
// CODE: tensor.extract %arg1
dist.process_mesh @three(shape = [3], dim_names = ["d"])
func.func @uneven(%ids: tensor<20xi32>, %table: tensor<64x6xf32> {dist.sharding = #dist.sharding<@three, [shard(0)]>}) -> tensor<20x6xf32> {
  %hot = call @one_hot(%ids) : (tensor<20xi32>) -> tensor<20x64xf32>
  %zero = arith.constant dense<0.0> : tensor<20x6xf32>
  %y = linalg.matmul ins(%hot, %table : tensor<20x64xf32>, tensor<64x6xf32>) outs(%zero : tensor<20x6xf32>) -> tensor<20x6xf32>
  return %y : tensor<20x6xf32>
}

// CHECK-LABEL: func.func @transposed(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg1, %{{.*}} : tensor<20x6xf32>, tensor<20x1xi32>)
// CHECK: arith.select
func.func @transposed(%ids: tensor<20xi32>, %g: tensor<20x6xf32>)
    -> (tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %hot = call @one_hot(%ids) : (tensor<20xi32>) -> tensor<20x64xf32>
  %e = tensor.empty() : tensor<64x20xf32>
  %t = linalg.transpose ins(%hot : tensor<20x64xf32>) outs(%e : tensor<64x20xf32>) permutation = [1, 0]
  %zero = arith.constant dense<0.0> : tensor<64x6xf32>
  %y = linalg.matmul ins(%t, %g : tensor<64x20xf32>, tensor<20x6xf32>) outs(%zero : tensor<64x6xf32>) -> tensor<64x6xf32>
  return %y : tensor<64x6xf32>
}

// The one-hot operand comes second, and selects elements of rows.
// CHECK-LABEL: func.func @selected(
// CHECK-NOT: linalg.contract
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg1, %{{.*}} : tensor<20x64xf32>, tensor<20x1xi32>)
// CODE-LABEL: func.func @selected(
// CODE: iterator_types = ["parallel"]}
// CODE: tensor.extract %arg1
func.func @selected(%ids: tensor<20xi32>, %x: tensor<20x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) -> tensor<20xf32> {
  %hot = call @one_hot(%ids) : (tensor<20xi32>) -> tensor<20x64xf32>
  %zero = arith.constant dense<0.0> : tensor<20xf32>
  %y = linalg.contract indexing_maps = [#ij, #ij, #i] ins(%x, %hot : tensor<20x64xf32>, tensor<20x64xf32>) outs(%zero : tensor<20xf32>) -> tensor<20xf32>
  return %y : tensor<20xf32>
}

// With a gate for each row.
// CHECK-LABEL: func.func @gated(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg2, {{.*}}
// CHECK: arith.mulf
// CHECK: arith.select
func.func @gated(%ids: tensor<20xi32>, %gates: tensor<20xf32>, %table: tensor<64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<20x6xf32> {
  %hot = call @one_hot(%ids) : (tensor<20xi32>) -> tensor<20x64xf32>
  %f = tensor.empty() : tensor<20x64xf32>
  %some = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]} ins(%hot, %gates : tensor<20x64xf32>, tensor<20xf32>) outs(%f : tensor<20x64xf32>) {
  ^bb0(%h: f32, %g: f32, %out: f32):
    %x = arith.mulf %h, %g : f32
    linalg.yield %x : f32
  } -> tensor<20x64xf32>
  %zero = arith.constant dense<0.0> : tensor<20x6xf32>
  %y = linalg.matmul ins(%some, %table : tensor<20x64xf32>, tensor<64x6xf32>) outs(%zero : tensor<20x6xf32>) -> tensor<20x6xf32>
  return %y : tensor<20x6xf32>
}

// Rounded to bf16, summed in f32.
// CHECK-LABEL: func.func @narrow(
// CHECK-NOT: linalg.matmul
// CHECK: arith.select
func.func @narrow(%ids: tensor<20xi32>, %table: tensor<64x6xbf16> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<20x6xf32> {
  %hot = call @one_hot(%ids) : (tensor<20xi32>) -> tensor<20x64xf32>
  %f = tensor.empty() : tensor<20x64xbf16>
  %short = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%hot : tensor<20x64xf32>) outs(%f : tensor<20x64xbf16>) {
  ^bb0(%h: f32, %out: bf16):
    %x = arith.truncf %h : f32 to bf16
    linalg.yield %x : bf16
  } -> tensor<20x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<20x6xf32>
  %y = linalg.matmul ins(%short, %table : tensor<20x64xbf16>, tensor<64x6xbf16>) outs(%zero : tensor<20x6xf32>) -> tensor<20x6xf32>
  return %y : tensor<20x6xf32>
}

// The product and the sum may be two ops.
// CHECK-LABEL: func.func @two_ops(
// CHECK-NOT: arith.mulf
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%arg1, %{{.*}} : tensor<20x64xf32>, tensor<20x1xi32>)
// CHECK: return
func.func @two_ops(%ids: tensor<20xi32>, %x: tensor<20x64xf32> {dist.sharding = #dist.sharding<@line, [shard(1)]>}) -> tensor<20xf32> {
  %hot = call @one_hot(%ids) : (tensor<20xi32>) -> tensor<20x64xf32>
  %p = arith.mulf %x, %hot : tensor<20x64xf32>
  %zero = arith.constant dense<0.0> : tensor<20xf32>
  %y = linalg.reduce { arith.addf } ins(%p : tensor<20x64xf32>) outs(%zero : tensor<20xf32>) dimensions = [1]
  return %y : tensor<20xf32>
}

// The dispatch of a mixture of experts: two one-hot factors. Experts are cut.
// CHECK-LABEL: func.func @dispatched(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg2, %{{.*}}, %{{.*}} : tensor<20x6xf32>, tensor<20x1xi32>, tensor<20x1xi32>)
// CHECK: arith.cmpi eq
// CHECK: arith.cmpi eq
// CHECK: arith.andi
// CHECK: return
func.func @dispatched(%experts: tensor<20xi32>, %slots: tensor<20xi32>, %x: tensor<20x6xf32>)
    -> (tensor<64x64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %dispatch = call @dispatch(%experts, %slots) : (tensor<20xi32>, tensor<20xi32>) -> tensor<20x64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64x6xf32>
  %y = linalg.contract indexing_maps = [#tec, #td, #ecd] ins(%dispatch, %x : tensor<20x64x64xf32>, tensor<20x6xf32>) outs(%zero : tensor<64x64x6xf32>) -> tensor<64x64x6xf32>
  return %y : tensor<64x64x6xf32>
}

func.func @dispatch(%experts: tensor<20xi32>, %slots: tensor<20xi32>) -> tensor<20x64x64xf32> {
  %e = call @one_hot(%experts) : (tensor<20xi32>) -> tensor<20x64xf32>
  %c = call @one_hot(%slots) : (tensor<20xi32>) -> tensor<20x64xf32>
  %f = tensor.empty() : tensor<20x64x64xf32>
  %dispatch = linalg.generic {indexing_maps = [affine_map<(t, e, c) -> (t, e)>, affine_map<(t, e, c) -> (t, c)>, affine_map<(t, e, c) -> (t, e, c)>],
                              iterator_types = ["parallel", "parallel", "parallel"]} ins(%e, %c : tensor<20x64xf32>, tensor<20x64xf32>) outs(%f : tensor<20x64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<20x64x64xf32>
  return %dispatch : tensor<20x64x64xf32>
}

// The gradient of its gates reads few elements of a product: only these are computed.
// CHECK-LABEL: func.func @gate_gradient(
// CHECK-NOT: linalg.contract
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%arg2, %arg3, %{{.*}}, %{{.*}} : tensor<20x6xf32>, tensor<64x64x6xf32>, tensor<20x1xi32>, tensor<20x1xi32>)
// CHECK: arith.mulf
// CHECK: arith.select
// CHECK: return
func.func @gate_gradient(%experts: tensor<20xi32>, %slots: tensor<20xi32>, %g: tensor<20x6xf32>,
                         %y: tensor<64x64x6xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<20xf32> {
  %dispatch = call @dispatch(%experts, %slots) : (tensor<20xi32>, tensor<20xi32>) -> tensor<20x64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<20x64x64xf32>
  %d = linalg.contract indexing_maps = [#td2, #ecd2, #tec2] ins(%g, %y : tensor<20x6xf32>, tensor<64x64x6xf32>) outs(%zeros : tensor<20x64x64xf32>) -> tensor<20x64x64xf32>
  %p = arith.mulf %d, %dispatch : tensor<20x64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<20xf32>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<20x64x64xf32>) outs(%zero : tensor<20xf32>) dimensions = [1, 2]
  return %s : tensor<20xf32>
}

// Not one-hot: signed booleans are -1, other comparisons hold in several columns. Few rows are products, also of sums.
// CHECK-LABEL: func.func @others(
// CHECK: linalg.matmul
// CHECK: linalg.matmul
// CHECK: linalg.matmul
func.func @others(%ids: tensor<20xi32>, %table: tensor<64x6xf32>, %short: tensor<4x6xf32>) -> (tensor<20x6xf32>, tensor<20x6xf32>, tensor<20x6xf32>) {
  %f = tensor.empty() : tensor<20x64xf32>
  %signed = linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<20xi32>) outs(%f : tensor<20x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %v = linalg.index 1 : index
    %n = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %id, %n : i32
    %x = arith.sitofp %hit : i1 to f32
    linalg.yield %x : f32
  } -> tensor<20x64xf32>
  %halves = linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<20xi32>) outs(%f : tensor<20x64xf32>) {
  ^bb0(%id: i32, %out: f32):
    %v = linalg.index 1 : index
    %n = arith.index_cast %v : index to i32
    %two = arith.constant 2 : i32
    %half = arith.divsi %n, %two : i32
    %hit = arith.cmpi eq, %id, %half : i32
    %x = arith.uitofp %hit : i1 to f32
    linalg.yield %x : f32
  } -> tensor<20x64xf32>
  %g = tensor.empty() : tensor<20x4xf32>
  %few = linalg.generic {indexing_maps = [#i, #ij], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<20xi32>) outs(%g : tensor<20x4xf32>) {
  ^bb0(%id: i32, %out: f32):
    %v = linalg.index 1 : index
    %n = arith.index_cast %v : index to i32
    %hit = arith.cmpi eq, %id, %n : i32
    %x = arith.uitofp %hit : i1 to f32
    linalg.yield %x : f32
  } -> tensor<20x4xf32>
  %zero = arith.constant dense<0.0> : tensor<20x6xf32>
  %a = linalg.matmul ins(%signed, %table : tensor<20x64xf32>, tensor<64x6xf32>) outs(%zero : tensor<20x6xf32>) -> tensor<20x6xf32>
  %b = linalg.matmul ins(%halves, %table : tensor<20x64xf32>, tensor<64x6xf32>) outs(%zero : tensor<20x6xf32>) -> tensor<20x6xf32>
  %c = linalg.matmul ins(%few, %short : tensor<20x4xf32>, tensor<4x6xf32>) outs(%zero : tensor<20x6xf32>) -> tensor<20x6xf32>
  return %a, %b, %c : tensor<20x6xf32>, tensor<20x6xf32>, tensor<20x6xf32>
}
