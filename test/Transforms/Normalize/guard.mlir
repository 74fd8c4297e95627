// RUN: tessera-opt %s --dist-guard --verify-diagnostics --split-input-file --allow-unregistered-dialect

// expected-error@+1 {{argument 0 has type 'tensor<4x?xf32>': dimension 1 is dynamic; shapes must be static, give it an extent}}
func.func @f(%x: tensor<4x?xf32>) { return }

// -----
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{'user.op' is unregistered}}
  "user.op"(%x) : (tensor<4xf32>) -> ()
  return
}

// -----
// expected-error@+1 {{'g' has no body; external functions are not supported}}
func.func private @g(tensor<4xf32>) -> tensor<4xf32>

// -----
// expected-error@+1 {{argument 0 has type 'tensor<*xf32>' without a rank}}
func.func @f(%x: tensor<*xf32>) { return }

// -----
// expected-error@+1 {{argument 0 has type 'tensor<4xi7>'; element types are}}
func.func @f(%x: tensor<4xi7>) { return }

// -----
// expected-error@+1 {{argument 0 has type 'memref<4xf32>'; expected a tensor or a scalar}}
func.func @f(%x: memref<4xf32>) { return }

// -----
// expected-error@+1 {{argument 0 has type 'tensor<4xui8>'; element types are}}
func.func @f(%x: tensor<4xui8>) { return }

// -----
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @collective(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'dist.all_reduce' is not allowed in the global view, where values have no device; write dist.reshard}}
  %0 = dist.all_reduce %x over @m ["x"] reduction = sum : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @coordinate() -> tensor<index> {
  // expected-error@+1 {{'dist.axis_index' is not allowed in the global view}}
  %0 = dist.axis_index over @m ["x"] : index
  %1 = tensor.from_elements %0 : tensor<index>
  return %1 : tensor<index>
}

// -----
dist.process_mesh @m(shape = [4], dim_names = ["x"])
func.func @local(%x: tensor<8xf32>) -> tensor<8xf32> attributes {dist.view = "local", dist.mesh = @m} {
  %0 = dist.all_reduce %x over @m ["x"] reduction = sum : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----
// A dynamic offset is clamped, which a window larger than its tensor would make impossible.
func.func @f(%x: tensor<4xf32>, %i: index) -> tensor<10xf32> {
  // expected-error@+1 {{'tensor.extract_slice' takes size 10, stride 1 of dimension 0 of 'tensor<4xf32>': no offset has the whole window inside; take a size of at most 4}}
  %0 = tensor.extract_slice %x[%i] [10] [1] : tensor<4xf32> to tensor<10xf32>
  return %0 : tensor<10xf32>
}

// -----
func.func @f(%x: tensor<2x8xf32>, %i: index) -> tensor<2x4xf32> {
  // expected-error@+1 {{'tensor.extract_slice' takes size 4, stride -3 of dimension 1 of 'tensor<2x8xf32>': no offset has the whole window inside; take a size of at most 3}}
  %0 = tensor.extract_slice %x[0, %i] [2, 4] [1, -3] : tensor<2x8xf32> to tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----
func.func @f(%u: tensor<10xf32>, %x: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  // expected-error@+1 {{'tensor.insert_slice' takes size 10, stride 1 of dimension 0 of 'tensor<4xf32>': no offset has the whole window inside; take a size of at most 4}}
  %0 = tensor.insert_slice %u into %x[%i] [10] [1] : tensor<10xf32> into tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @f(%x: tensor<10xf32>, %i: index, %j: index) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{'tensor.pad' places 'tensor<10xf32>' in 'tensor<4xf32>': dimension 0 does not fit; give the result an extent of at least 10}}
  %0 = tensor.pad %x low[%i] high[%j] {
  ^bb0(%at: index):
    tensor.yield %zero : f32
  } : tensor<10xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----
func.func @f(%x: tensor<10xf32>, %j: index) -> tensor<12xf32> {
  %zero = arith.constant 0.0 : f32
  // expected-error@+1 {{dimension 0 does not fit; give the result an extent of at least 13}}
  %0 = tensor.pad %x low[3] high[%j] {
  ^bb0(%at: index):
    tensor.yield %zero : f32
  } : tensor<10xf32> to tensor<12xf32>
  return %0 : tensor<12xf32>
}

// -----
// Windows that fit, without elements, or with a dynamic stride (which is clamped, too).
func.func @f(%x: tensor<4xf32>, %i: index, %s: index) -> (tensor<4xf32>, tensor<0xf32>, tensor<10xf32>) {
  %0 = tensor.extract_slice %x[%i] [4] [1] : tensor<4xf32> to tensor<4xf32>
  %1 = tensor.extract_slice %x[%i] [0] [1] : tensor<4xf32> to tensor<0xf32>
  %2 = tensor.extract_slice %x[%i] [10] [%s] : tensor<4xf32> to tensor<10xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<0xf32>, tensor<10xf32>
}
