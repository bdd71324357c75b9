// Why photos could not be read, as the server says it in English: in the reader's language.

import { t, tn } from "../language.js";

const REASONS = {
  "decoding it takes far longer than a photo of its size does": t("decoding it takes far longer than a photo of its size does"),
  "decoding it was broken off": t("decoding it was broken off"),
  "decoding it was broken off, most likely for want of memory": t("decoding it was broken off, most likely for want of memory"),
  "it is a folder, not a photo": t("it is a folder, not a photo"),
  "it is not a regular file": t("it is not a regular file"),
  "it is not a photo in a format that can be read, or its header is damaged": t("it is not a photo in a format that can be read, or its header is damaged"),
  "its decoder crashed": t("its decoder crashed"),
  "its link leads back to itself": t("its link leads back to itself"),
  "its link leads out of the folders that photos may be taken from": t("its link leads out of the folders that photos may be taken from"),
  "its name is not valid": t("its name is not valid"),
  "its name is too long": t("its name is too long"),
  "it is in no folder that photos may be taken from, so nothing is written beside it": t("it is in no folder that photos may be taken from, so nothing is written beside it"),
  "its sidecar cannot be written": t("its sidecar cannot be written"),
  "its sidecar has a document type, which XMP never has": t("its sidecar has a document type, which XMP never has"),
  "its sidecar is a link: put a file in its place": t("its sidecar is a link: put a file in its place"),
  "its sidecar is nested too deeply": t("its sidecar is nested too deeply"),
  "its sidecar is not XML": t("its sidecar is not XML"),
  "its sidecar is not XMP": t("its sidecar is not XMP"),
  "its sidecar is too large to be one": t("its sidecar is too large to be one"),
  "its strips share the same bytes, which no photo's do": t("its strips share the same bytes, which no photo's do"),
  "no process can be started to decode it": t("no process can be started to decode it"),
  "permission to read it is denied": t("permission to read it is denied"),
  "the file does not exist": t("the file does not exist"),
  "the file is damaged": t("the file is damaged"),
  "the file is empty": t("the file is empty"),
  "the file is truncated": t("the file is truncated"),
  "the file cannot be read": t("the file cannot be read"),
  "the file has changed since it was indexed: run cairn index": t("the file has changed since it was indexed: look for new photos"),
  "its features are others than those that were indexed": t("its features are others than those that were indexed"),
  "the photo has no pixels": t("the photo has no pixels"),
  "the text stored in the file unpacks to far more than a photo's does": t("the text stored in the file unpacks to far more than a photo's does"),
  "there is not enough memory to decode it": t("there is not enough memory to decode it"),
};

/** A reason in the reader's language, where it is known; what stands behind it in brackets stays. */
export function toldReason(reason) {
  const plain = reason.replace(/[.]$/, "");
  if (Object.hasOwn(REASONS, plain)) return REASONS[plain];
  const [, width, height, most] = /^the photo is (\d+)x(\d+) pixels, which is more than the limit of (\d+) pixels$/.exec(plain) ?? [];
  if (most) return t("the photo is {width}x{height} pixels, which is more than the limit of {most} pixels", { width, height, most });
  const [, scans, across, down, all] = /^the photo has (\d+) scans of (\d+)x(\d+) pixels, which is more than the limit of (\d+) pixels in all$/.exec(plain) ?? [];
  if (all) return t("the photo has {scans} scans of {across}x{down} pixels, which is more than the limit of {all} pixels in all", { scans, across, down, all });
  const [, parts] = /^the file is in more than (\d+) parts, which is far more than a photo of its length has$/.exec(plain) ?? [];
  if (parts) return t("the file is in more than {parts} parts, which is far more than a photo of its length has", { parts });
  const [, what, more] = /^(.*?) ([(].*[)])$/s.exec(plain) ?? [];
  return Object.hasOwn(REASONS, what ?? "") ? `${REASONS[what]} ${more}` : plain;
}

const REMARKS = {
  "the file ends early, and fine details may be missing": t("the file ends early, and fine details may be missing"),
  "its transparency was laid over black, as white hides it": t("its transparency was laid over black, as white hides it"),
  "its first frame is blank, and the next was read": t("its first frame is blank, and the next was read"),
};

/** What is to be known of how a photo was read, in the reader's language. */
export function toldRemark(remark) {
  const [, share] = /^the lowest (\d+)% are missing$/.exec(remark) ?? [];
  if (share) return t("the lowest {share}% are missing", { share });
  const [, pages] = /^(\d+) more pages? of the file left out$/.exec(remark) ?? [];
  if (pages) return tn(Number(pages), "{n} more page of the file left out", "{n} more pages of the file left out");
  const [, frames] = /^its first (\d+) frames are blank, and the next was read$/.exec(remark) ?? [];
  if (frames) return t("its first {frames} frames are blank, and the next was read", { frames });
  return REMARKS[remark] ?? remark;
}
