/** Checks directLun volumes, which name block devices of the node. Only the node knows whether the device exists. */
import type { VmiVolume } from '#api/domain/volume.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { matchesAny } from '#api/validation/glob.ts';
import { listSetKeys } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';

const IDS = ['guid', 'uuid'] as const;
/** The id becomes a file name below /dev/disk, so it may not contain slashes or consist of dots. */
const DEVICE_ID = /^(?!\.+$)[A-Za-z0-9._:-]+$/;

export function checkDirectLun(lun: NonNullable<VmiVolume['directLun']>, path: string): FieldError[] {
  const ids = listSetKeys(lun, IDS);
  if (ids.length > 1) return [forbiddenField(path, `only one of ${ids.join(', ')} may be set`)];
  const [id] = ids;
  if (id === undefined) return [requiredValue(path, `one of ${IDS.join(', ')} must be set`)];
  if (DEVICE_ID.test(lun[id] ?? '')) return [];
  return [invalidValue(`${path}.${id}`, lun[id], 'must consist of letters, digits, ".", "_", ":" and "-"')];
}

/** Refuses two disks on the same device: they would overwrite each other. */
export function checkSharedLuns(volumes: readonly VmiVolume[], path: string): FieldError[] {
  const seen = new Set<string>();
  return volumes.flatMap(({ directLun = {} }, i) =>
    listSetKeys(directLun, IDS).flatMap((id) => {
      const key = `${id} ${directLun[id]}`;
      if (seen.has(key)) return [duplicateValue(`${path}[${i}].directLun.${id}`, directLun[id])];
      seen.add(key);
      return [];
    }),
  );
}

/**
 * Refuses devices that the KubeVirt object does not allow: permission to create VMs alone must not give access to the
 * disks of nodes. Checked when a user writes the name of a device, not again when the VM starts.
 */
export function checkPermittedLuns(
  { volumes = [] }: Pick<VmiSpec, 'volumes'>,
  path: string,
  { directLuns }: Pick<Configuration, 'directLuns'>,
): FieldError[] {
  return volumes.flatMap(({ directLun = {} }, i) =>
    listSetKeys(directLun, IDS).flatMap((id) => {
      const name = directLun[id] ?? '';
      if (!DEVICE_ID.test(name) || matchesAny(directLuns, name)) return [];
      return [forbiddenField(`${path}.volumes[${i}].directLun.${id}`, describeForbiddenLun(name))];
    }),
  );
}

const describeForbiddenLun = (name: string) =>
  `VMs may not use the block device "${name}"; a cluster administrator can allow it in spec.configuration.directLuns of the KubeVirt object ${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`;
