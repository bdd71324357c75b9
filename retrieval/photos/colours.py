"""Colours of a profile, such as Display P3 or Adobe RGB, as those of sRGB, which pictures without one are shown as."""

from __future__ import annotations

import io

from PIL import Image, ImageCms


def to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Convert an image of some profile (ICC.1) to RGB in sRGB; a profile that is damaged, or of other colours, is none.

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
