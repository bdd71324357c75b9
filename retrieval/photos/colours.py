"""Conversion of colours of a profile, such as Display P3 or Adobe RGB, to sRGB, the default of viewers."""

from __future__ import annotations

import io

from PIL import Image, ImageCms


def to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Convert an image with a profile (ICC.1) to RGB in sRGB; damaged profiles, or those of other colours, are ignored.

    Parameters
    ----------
    image : PIL.Image.Image
        Of mode L, RGB or CMYK.
    profile : bytes
        As the file has it.

    Returns
    -------
    PIL.Image.Image
        Of mode RGB.
    """
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
