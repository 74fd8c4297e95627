# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The architectures of bench/imports/run: one of each family of timm, those of torchvision, small configurations of transformers."""

from __future__ import annotations

import torch

# The smallest model of each module of timm.models below 100 million parameters.
TIMM = """
    beit_base_patch16_224 cait_xxs24_224 coat_tiny convit_tiny convmixer_768_32 cpubone_nano crossvit_tiny_240
    cs3darknet_focus_s csatv2 cspnext_tiny davit_tiny deit_tiny_patch16_224 densenet121 dla34 dpn48b
    eca_halonext26ts edgenext_xx_small efficientformer_l1 efficientformerv2_s0 efficientvim_m1 efficientvit_b0
    efficientvit_m0 ese_vovnet19b_slim_dw fasternet_t0 fastvit_t12 focalnet_tiny_srf gcvit_xxtiny ghostnet_050
    hardcorenas_b hgnetv2_b0 hiera_tiny_224 hrnet_w18_small iformer_s inception_next_atto inception_resnet_v2
    inception_v3 inception_v4 lcnetv2_small legacy_seresnet18 legacy_xception levit_384_s8 lowformer_b0
    mixer_s16_224 mobilenetv3_small_050 mobilenetv5_base mobilevit_xxs mvitv2_tiny naflexvit_base_patch16_siglip
    nasnetalarge nest_tiny nextvit_small pit_xs_224 pnasnet5large poolformerv2_s12 pvt_v2_b0 qwen3_vit_88m
    rdnet_tiny regnetx_002 repghostnet_050 repvit_m1 res2net50_14w_8s resnest14d resnetv2_18 rexnet_100
    sam2_hiera_tiny samvit_base_patch16_224 selecsls42 sequencer2d_s shvit_s1 skresnet18 starnet_s050
    swiftformer_xs swin_tiny_patch4_window7_224 swinv2_cr_tiny_224 swinv2_tiny_window8_256 test_byobnet
    test_coatnet test_convnext test_efficientnet test_mambaout test_nfnet test_resnet test_vit test_vit_relpos
    tiny_vit_5m_224 tnt_s_legacy_patch16_224 tresnet_m twins_svt_small vgg11 visformer_tiny
    vit_tiny_patch16_dinov3_qkvb vit_tiny_r_s16_p8_224 vitamin_small_224 volo_d1_224 xception41p
    xcit_nano_12_p8_224
""".split()

TORCHVISION = """
    alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5 mobilenet_v2
    mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_1 swin_t swin_v2_t
    vgg11 vit_b_32 wide_resnet50_2
    deeplabv3_mobilenet_v3_large deeplabv3_resnet50 fcn_resnet50 lraspp_mobilenet_v3_large
    fasterrcnn_resnet50_fpn fasterrcnn_mobilenet_v3_large_fpn fcos_resnet50_fpn keypointrcnn_resnet50_fpn maskrcnn_resnet50_fpn
    retinanet_resnet50_fpn ssd300_vgg16 ssdlite320_mobilenet_v3_large
    mc3_18 mvit_v1_b r2plus1d_18 r3d_18 s3d swin3d_t raft_small
""".split()


def names(library: str) -> list[str]:
    if library == "transformers":
        from transformers_models import MODELS
        return list(MODELS)
    return TIMM if library == "timm" else TORCHVISION


def first(result):
    """The first float tensor of a result."""
    if isinstance(result, torch.Tensor):
        return result if result.is_floating_point() else None
    if hasattr(result, "to_tuple"):
        result = result.to_tuple()
    values = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else ()
    return next((found for value in values if (found := first(value)) is not None), None)


class First(torch.nn.Module):
    """A module that takes tensors in the order of `keywords` and returns its first float tensor."""

    def __init__(self, module, keywords=()):
        super().__init__()
        self.module, self.keywords = module, keywords

    def forward(self, *values):
        return first(self.module(**dict(zip(self.keywords, values))) if self.keywords else self.module(*values))


class Detection(torch.nn.Module):
    """The part of a detector before boxes are selected: backbone and head, whose outputs are joined."""

    def __init__(self, detector):
        super().__init__()
        self.backbone = detector.backbone
        self.head = detector.rpn.head if hasattr(detector, "rpn") else detector.head

    def forward(self, x):
        results = self.head(list(self.backbone(x).values()))
        flat = [v for part in (results.values() if isinstance(results, dict) else results) for v in (part if isinstance(part, (list, tuple)) else [part])]
        return torch.cat([v.reshape(v.shape[0], -1) for v in flat], 1)


def model(name: str):
    """(module in evaluation mode, inputs) of LIBRARY/NAME."""
    library, name = name.split("/")
    if library == "transformers":
        import transformers
        from transformers_models import MODELS
        kind, config, inputs = MODELS[name]()
        made = getattr(transformers, kind)(config)
        return First(made, list(inputs)).eval(), tuple(inputs.values())
    if library == "timm":
        import timm
        fixed = timm.get_pretrained_cfg(name)
        size = 64
        try:
            made = timm.create_model(name, num_classes=10, img_size=size)
            with torch.no_grad():
                made.eval()(torch.randn(1, 3, size, size))
        except Exception:  # takes no size, or not this one
            size = fixed.input_size[-1] if fixed.fixed_input_size else 64
            made = timm.create_model(name, num_classes=10)
            try:
                with torch.no_grad():
                    made.eval()(torch.randn(1, 3, size, size))
            except Exception:
                size = fixed.input_size[-1]
        return First(made).eval(), (torch.randn(2, 3, size, size),)
    import torchvision
    if name.startswith("raft"):
        return First(torchvision.models.get_model(name)).eval(), (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128))
    options = {"weights_backbone": None} if any(k in name for k in ("rcnn", "fcos", "retina", "ssd", "deeplab", "fcn", "lraspp")) else {}
    made = torchvision.models.get_model(name, weights=None, **options).eval()
    if hasattr(made, "roi_heads") or hasattr(made, "anchor_generator"):
        made = Detection(made).eval()
    if name.endswith("3d_t") or name in ("mc3_18", "r2plus1d_18", "r3d_18", "s3d", "mvit_v1_b"):
        frames, size = (16, 224) if name in ("mvit_v1_b", "s3d") else (8, 64)
        return First(made).eval(), (torch.randn(1, 3, frames, size, size),)
    size = {"inception_v3": 96, "maxvit_t": 224, "vit_b_32": 224, "ssd300_vgg16": 300, "ssdlite320_mobilenet_v3_large": 320}.get(name, 64)
    return First(made).eval(), (torch.randn(1 if size > 200 else 2, 3, size, size),)
