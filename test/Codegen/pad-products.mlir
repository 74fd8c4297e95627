// For GPUs, operands of large products of 16-bit floats whose rows are no multiple of 16 bytes are padded: the weights once for
// both products, and the gradient. The result is rounded before it is sliced.
// RUN: tessera-opt %s --tessera-pipeline --codegen=gpu=true | FileCheck %s
// RUN: tessera-opt %s --tessera-pipeline --codegen | FileCheck %s --check-prefix=CPU
// RUN: tessera run %s --backend stub --check | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/4097/4104/g' %s > %t.mlir && tessera-opt %t.mlir --tessera-pipeline --codegen=gpu=true | FileCheck %s --check-prefix=ALIGNED
// RUN: sed 's/256x/2x/g' %s > %t.mlir && tessera-opt %t.mlir --tessera-pipeline --codegen=gpu=true | FileCheck %s --check-prefix=SMALL

// CHECK: rt.launch @[[W:.*]](%w) to (%[[PADDED:.*]]) : (!rt.slot<1024x4097xbf16>) to (!rt.slot<1024x4104xbf16>)
// CHECK: rt.gemm %x, %[[PADDED]] to %[[P:.*]] batch 1 m 256 n 4104 k 1024 ld [1024, 4104, 4104] {{.*}} to !rt.slot<256x4104xbf16>
// CHECK: rt.launch @{{.*}}(%[[P]]) to ({{.*}}) : (!rt.slot<256x4104xbf16>) to (!rt.slot<256x4097xbf16>)
// CHECK: rt.gemm %{{.*}}, %[[PADDED]] to %{{.*}} batch 1 m 256 n 1024 k 4104 ld [4104, 4104, 1024]
// CPU-NOT: 4104
// EQUAL: check y ok
// EQUAL: check dx ok
// ALIGNED: rt.gemm %x, %w to
// SMALL: rt.gemm %x, %w to {{.*}} n 4097

dist.process_mesh @m(shape = [1], dim_names = ["d"])
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<256x1024xbf16> {dist.name = "x"}, %w: tensor<1024x4097xbf16> {dist.name = "w"}) -> (tensor<256x4097xbf16> {dist.name = "y"},
       tensor<256x1024xbf16> {dist.name = "dx"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x4097xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x4097xf32>) -> tensor<256x4097xf32>
  %p = linalg.matmul ins(%x, %w : tensor<256x1024xbf16>, tensor<1024x4097xbf16>) outs(%z : tensor<256x4097xf32>) -> tensor<256x4097xf32>
  %eb = tensor.empty() : tensor<256x4097xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<256x4097xf32>) outs(%eb : tensor<256x4097xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<256x4097xbf16>
  %s = math.tanh %y : tensor<256x4097xbf16>
  %e2 = tensor.empty() : tensor<256x1024xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %q = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>] ins(%s, %w : tensor<256x4097xbf16>, tensor<1024x4097xbf16>) outs(%z2 : tensor<256x1024xf32>) -> tensor<256x1024xf32>
  %e3 = tensor.empty() : tensor<256x1024xbf16>
  %dx = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%q : tensor<256x1024xf32>) outs(%e3 : tensor<256x1024xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<256x1024xbf16>
  return %y, %dx : tensor<256x4097xbf16>, tensor<256x1024xbf16>
}
