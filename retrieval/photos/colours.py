"""Conversion of colours of a profile, such as Display P3 or Adobe RGB, to sRGB, the default of viewers."""

from __future__ import annotations

import io

from PIL import Image, ImageCms


def to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Convert an L, RGB or CMYK image with a profile (ICC.1) to sRGB; a damaged or unfit profile is ignored."""
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        if not ImageCms.getProfileDescription(source).startswith("sRGB"):
            target = ImageCms.createProfile("sRGB")
            converted = ImageCms.profileToProfile(image, source, target, outputMode="RGB")
            if converted is not None:
                return converted
    except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
        pass
    return image.convert("RGB")
