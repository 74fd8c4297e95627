// A softmax and its argmax along very long rows.
dist.process_mesh @mesh(shape = [7], dim_names = ["x"])

#map0 = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0) -> (d0)>

func.func @main(
    %x: tensor<3x40001xf32> {dist.name = "x"} )
    -> (tensor<3x40001xf32> {dist.name = "out.0"},
        tensor<3xi32> {dist.name = "out.1"},
        tensor<3xf32> {dist.name = "out.2"}) {
  %0 = arith.constant dense<0xFF800000> : tensor<3xf32> 
  %4 = linalg.generic {indexing_maps = [#map0, #map1], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x40001xf32>) outs(%0 : tensor<3xf32>) {
  ^bb0(%1: f32, %2: f32):
    %3 = arith.maximumf %2, %1 : f32
    linalg.yield %3 : f32
  } -> tensor<3xf32> 
  %5 = tensor.empty() : tensor<3xf32> 
  %10 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%4 : tensor<3xf32>) outs(%5 : tensor<3xf32>) {
  ^bb0(%6: f32, %7: f32):
    %8 = arith.constant 0xFF800000 : f32
    %9 = arith.maximumf %8, %6 : f32
    linalg.yield %9 : f32
  } -> tensor<3xf32> 
  %11 = tensor.empty() : tensor<3x40001xf32> 
  %16 = linalg.generic {indexing_maps = [#map0, #map1, #map0], iterator_types = ["parallel", "parallel"]} ins(%x, %10 : tensor<3x40001xf32>, tensor<3xf32>) outs(%11 : tensor<3x40001xf32>) {
  ^bb0(%12: f32, %13: f32, %14: f32):
    %15 = arith.subf %12, %13 : f32
    linalg.yield %15 : f32
  } -> tensor<3x40001xf32> 
  %17 = math.exp %16 : tensor<3x40001xf32> 
  %18 = arith.constant dense<0.0> : tensor<3xf32> 
  %22 = linalg.generic {indexing_maps = [#map0, #map1], iterator_types = ["parallel", "reduction"]} ins(%17 : tensor<3x40001xf32>) outs(%18 : tensor<3xf32>) {
  ^bb0(%19: f32, %20: f32):
    %21 = arith.addf %20, %19 : f32
    linalg.yield %21 : f32
  } -> tensor<3xf32> 
  %27 = linalg.generic {indexing_maps = [#map0, #map1, #map0], iterator_types = ["parallel", "parallel"]} ins(%17, %22 : tensor<3x40001xf32>, tensor<3xf32>) outs(%11 : tensor<3x40001xf32>) {
  ^bb0(%23: f32, %24: f32, %25: f32):
    %26 = arith.divf %23, %24 : f32
    linalg.yield %26 : f32
  } -> tensor<3x40001xf32> 
  %28 = arith.constant dense<40000> : tensor<3xi32> 
  %40 = linalg.generic {indexing_maps = [#map0, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%x, %4 : tensor<3x40001xf32>, tensor<3xf32>) outs(%28 : tensor<3xi32>) {
  ^bb0(%29: f32, %30: f32, %31: i32):
    %32 = arith.cmpf oeq, %29, %30 : f32
    %33 = arith.cmpf une, %29, %29 : f32
    %34 = arith.ori %32, %33 : i1
    %35 = linalg.index 1 : index
    %36 = arith.index_cast %35 : index to i32
    %37 = arith.constant 40000 : i32
    %38 = arith.select %34, %36, %37 : i32
    %39 = arith.minsi %31, %38 : i32
    linalg.yield %39 : i32
  } -> tensor<3xi32> 
  %41 = tensor.empty() : tensor<3xi1> 
  %47 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel"]} ins(%10 : tensor<3xf32>) outs(%41 : tensor<3xi1>) {
  ^bb0(%42: f32, %43: i1):
    %44 = math.absf %42 : f32
    %45 = arith.constant 0x7F800000 : f32
    %46 = arith.cmpf olt, %44, %45 : f32
    linalg.yield %46 : i1
  } -> tensor<3xi1> 
  %53 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel"]} ins(%47, %10 : tensor<3xi1>, tensor<3xf32>) outs(%5 : tensor<3xf32>) {
  ^bb0(%48: i1, %49: f32, %50: f32):
    %51 = arith.constant 0.0 : f32
    %52 = arith.select %48, %49, %51 : f32
    linalg.yield %52 : f32
  } -> tensor<3xf32> 
  %58 = linalg.generic {indexing_maps = [#map0, #map1, #map0], iterator_types = ["parallel", "parallel"]} ins(%x, %53 : tensor<3x40001xf32>, tensor<3xf32>) outs(%11 : tensor<3x40001xf32>) {
  ^bb0(%54: f32, %55: f32, %56: f32):
    %57 = arith.subf %54, %55 : f32
    linalg.yield %57 : f32
  } -> tensor<3x40001xf32> 
  %59 = math.exp %58 : tensor<3x40001xf32> 
  %63 = linalg.generic {indexing_maps = [#map0, #map1], iterator_types = ["parallel", "reduction"]} ins(%59 : tensor<3x40001xf32>) outs(%18 : tensor<3xf32>) {
  ^bb0(%60: f32, %61: f32):
    %62 = arith.addf %61, %60 : f32
    linalg.yield %62 : f32
  } -> tensor<3xf32> 
  %64 = math.absf %63 : tensor<3xf32> 
  %65 = math.log %64 : tensor<3xf32> 
  %66 = arith.addf %65, %53 : tensor<3xf32> 
  return %27, %40, %66 : tensor<3x40001xf32>, tensor<3xi32>, tensor<3xf32> 
}

