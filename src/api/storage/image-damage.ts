/** Recognizes the errors with which QEMU and qemu-img report a damaged qcow2 image. Pure. */

/** Words that occur in errors about the content of an image, and not in those about access to its file. */
const DAMAGE = [
  /not in qcow2 format/i,
  /qcow2 header|header length|header extension/i,
  /image is corrupt/i,
  /(L1|L2|snapshot|refcount|reference count|bitmap) (table|directory|block)/i,
  /unsupported (cluster size|qcow2 (feature|version)|refcount|compression)/i,
  /unknown (incompatible|autoclear) feature/i,
  /backing file (name|offset)/i,
];

/** The reason of an instance with a damaged image. */
export const IMAGE_DAMAGED = 'ImageDamaged';

/** Advice for users of a damaged image. */
export const DAMAGE_ADVICE = 'restore the claim from a snapshot, or upload the image again into a new claim';

export function reportsDamage(errorText: string): boolean {
  return DAMAGE.some((pattern) => pattern.test(errorText));
}
