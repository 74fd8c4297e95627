// Attention writes a result that is only rounded to 16 bits as such. One that is read in f32 as well stays f32.
// RUN: tessera-opt %s --codegen-form-epilogues --split-input-file | FileCheck %s

#q = affine_map<(b, m, n, f, g) -> (b, m, f)>
#k = affine_map<(b, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, m, n, f, g) -> (b, m, g)>
#id = affine_map<(b, m, g) -> (b, m, g)>
// CHECK-LABEL: func.func @rounded
// CHECK: ext.attention
// CHECK-NEXT: bb0
// CHECK-NEXT: ext.yield
// CHECK-NEXT: } -> tensor<2x8x4xbf16>
// CHECK-NOT: arith.truncf
// CHECK: return
func.func @rounded(%q: tensor<2x8x4xbf16>, %k: tensor<2x8x4xbf16>, %v: tensor<2x8x4xbf16>) -> tensor<2x8x4xbf16> attributes {dist.view = "local"} {
  %a = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<2x8x4xbf16>, tensor<2x8x4xbf16>, tensor<2x8x4xbf16>) {
  ^bb0(%score: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    ext.yield %score : f32
  } -> tensor<2x8x4xf32>
  %e = tensor.empty() : tensor<2x8x4xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<2x8x4xf32>) outs(%e : tensor<2x8x4xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<2x8x4xbf16>
  return %y : tensor<2x8x4xbf16>
}

// -----

#q = affine_map<(b, m, n, f, g) -> (b, m, f)>
#k = affine_map<(b, m, n, f, g) -> (b, n, f)>
#v = affine_map<(b, m, n, f, g) -> (b, n, g)>
#o = affine_map<(b, m, n, f, g) -> (b, m, g)>
#id = affine_map<(b, m, g) -> (b, m, g)>
// CHECK-LABEL: func.func @read
// CHECK: ext.attention
// CHECK: -> tensor<2x8x4xf32>
// CHECK: arith.truncf
func.func @read(%q: tensor<2x8x4xbf16>, %k: tensor<2x8x4xbf16>, %v: tensor<2x8x4xbf16>) -> (tensor<2x8x4xbf16>, tensor<2x8x4xf32>) attributes {dist.view = "local"} {
  %a = ext.attention indexing_maps = [#q, #k, #v, #o] ins(%q, %k, %v : tensor<2x8x4xbf16>, tensor<2x8x4xbf16>, tensor<2x8x4xbf16>) {
  ^bb0(%score: f32, %b: index, %m: index, %n: index, %f: index, %g: index):
    ext.yield %score : f32
  } -> tensor<2x8x4xf32>
  %e = tensor.empty() : tensor<2x8x4xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a : tensor<2x8x4xf32>) outs(%e : tensor<2x8x4xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %t = arith.truncf %in : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<2x8x4xbf16>
  return %y, %a : tensor<2x8x4xbf16>, tensor<2x8x4xf32>
}
