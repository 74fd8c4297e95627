// RUN: tessera-fuzz --gradients --check %s

// Every op of the tensor dialect that moves elements, compared with differences.
func.func @main(%x: tensor<4x6xf64>, %s: tensor<f64>, %rows: tensor<3x1xindex> {dist.range = [0, 4]})
    -> (tensor<2x2x6xf64>, tensor<24xf64>, tensor<7x9xf64>, tensor<2x2xf64>, tensor<4x6xf64>, tensor<3x6xf64>, tensor<4x6xf64>,
        tensor<5xf64>, tensor<2xf64>, tensor<8x6xf64>, tensor<4x6xf64>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %expanded = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 2, 6] : tensor<4x6xf64> into tensor<2x2x6xf64>
  %collapsed = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf64> into tensor<24xf64>
  %scalar = tensor.extract %s[] : tensor<f64>
  %padded = tensor.pad %x low[1, 2] high[2, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %scalar : f64
  } : tensor<4x6xf64> to tensor<7x9xf64>
  %slice = tensor.extract_slice %x[1, 0] [2, 2] [1, 3] : tensor<4x6xf64> to tensor<2x2xf64>
  %inserted = tensor.insert_slice %slice into %x[0, 2] [2, 2] [2, 1] : tensor<2x2xf64> into tensor<4x6xf64>
  %gathered = tensor.gather %x[%rows] gather_dims([0]) : (tensor<4x6xf64>, tensor<3x1xindex>) -> tensor<3x6xf64>
  %places = arith.constant dense<[[3], [0], [1]]> : tensor<3x1xindex>
  %small = tensor.expand_shape %gathered [[0, 1], [2]] output_shape [3, 1, 6] : tensor<3x6xf64> into tensor<3x1x6xf64>
  %scattered = tensor.scatter %small into %x[%places] scatter_dims([0]) unique : (tensor<3x1x6xf64>, tensor<4x6xf64>, tensor<3x1xindex>) -> tensor<4x6xf64>
  %element = tensor.extract %x[%c2, %c0] : tensor<4x6xf64>
  %double = arith.mulf %element, %scalar : f64
  %splat = tensor.splat %double : tensor<5xf64>
  %pair = tensor.from_elements %double, %element : tensor<2xf64>
  %joined = tensor.concat dim(0) %x, %inserted : (tensor<4x6xf64>, tensor<4x6xf64>) -> tensor<8x6xf64>
  %one = tensor.insert %double into %x[%c0, %c2] : tensor<4x6xf64>
  return %expanded, %collapsed, %padded, %slice, %inserted, %gathered, %scattered, %splat, %pair, %joined, %one
      : tensor<2x2x6xf64>, tensor<24xf64>, tensor<7x9xf64>, tensor<2x2xf64>, tensor<4x6xf64>, tensor<3x6xf64>, tensor<4x6xf64>,
        tensor<5xf64>, tensor<2xf64>, tensor<8x6xf64>, tensor<4x6xf64>
}
