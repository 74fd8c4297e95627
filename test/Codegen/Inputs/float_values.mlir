func.func @main(%h: tensor<65536xf16> {dist.name = "h"}, %f: tensor<20000xf32> {dist.name = "f"},
                %d: tensor<20000xf64> {dist.name = "d"})
    -> (tensor<65536xf32> {dist.name = "wide"}, tensor<20000xf16> {dist.name = "narrow"},
        tensor<20000xf16> {dist.name = "narrow64"}, tensor<20000xf32> {dist.name = "brain32"},
        tensor<20000xf32> {dist.name = "brain64"},
        tensor<20000xf32> {dist.name = "sin"}, tensor<20000xf32> {dist.name = "cos"},
        tensor<20000xf32> {dist.name = "sinh"}, tensor<20000xf32> {dist.name = "cosh"},
        tensor<20000xf64> {dist.name = "sin64"}) {
  %wide = arith.extf %h : tensor<65536xf16> to tensor<65536xf32>
  %narrow = arith.truncf %f : tensor<20000xf32> to tensor<20000xf16>
  %narrow64 = arith.truncf %d : tensor<20000xf64> to tensor<20000xf16>
  %brain0 = arith.truncf %f : tensor<20000xf32> to tensor<20000xbf16>
  %brain32 = arith.extf %brain0 : tensor<20000xbf16> to tensor<20000xf32>
  %brain = arith.truncf %d : tensor<20000xf64> to tensor<20000xbf16>
  %brain64 = arith.extf %brain : tensor<20000xbf16> to tensor<20000xf32>
  %sin = math.sin %f : tensor<20000xf32>
  %cos = math.cos %f : tensor<20000xf32>
  %sinh = math.sinh %f : tensor<20000xf32>
  %cosh = math.cosh %f : tensor<20000xf32>
  %sin64 = math.sin %d : tensor<20000xf64>
  return %wide, %narrow, %narrow64, %brain32, %brain64, %sin, %cos, %sinh, %cosh, %sin64
    : tensor<65536xf32>, tensor<20000xf16>, tensor<20000xf16>, tensor<20000xf32>, tensor<20000xf32>, tensor<20000xf32>,
      tensor<20000xf32>, tensor<20000xf32>, tensor<20000xf32>, tensor<20000xf64>
}
