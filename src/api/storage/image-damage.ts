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

/**
 * Texts of system errors. QEMU appends them to what it was doing, as in "Could not read L1 table: Input/output error": the
 * storage has failed or is full, and the image may be whole.
 */
const SYSTEM_ERROR =
  /: (Input\/output error|No space left on device|Disk quota exceeded|Read-only file system|Permission denied|Operation not permitted|Cannot allocate memory|Too many open files|Stale file handle|Resource temporarily unavailable|Connection timed out|Transport endpoint is not connected|No such device|Remote I\/O error|Host is down)\b/i;

/** The reason of an instance with a damaged image. */
export const IMAGE_DAMAGED = 'ImageDamaged';

/** Advice for users of a damaged image. */
export const DAMAGE_ADVICE = 'restore the claim from a snapshot, or upload the image again into a new claim';

/** Reports whether the content of the image is damaged. An error of its storage is not damage: it may pass. */
export function reportsDamage(errorText: string): boolean {
  return !SYSTEM_ERROR.test(errorText) && DAMAGE.some((pattern) => pattern.test(errorText));
}
