/** Block devices of the node, each by one of its names; whether there is such a device only the node can tell. */
import type { Volume } from '#api/domain/volume.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { matchesAny } from '#api/validation/glob.ts';
import { setOf } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { duplicateValue, forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';

const IDS = ['guid', 'uuid'] as const;
/** It becomes a name below /dev/disk: no way out of there. */
const DEVICE_ID = /^(?!\.+$)[A-Za-z0-9._:-]+$/;

export function checkDirectLun(lun: NonNullable<Volume['directLun']>, path: string): FieldError[] {
  const ids = setOf(lun, IDS);
  if (ids.length > 1) return [forbiddenField(path, `only one of ${ids.join(', ')} may be set`)];
  const [id] = ids;
  if (id === undefined) return [requiredValue(path, `one of ${IDS.join(', ')} must be set`)];
  if (DEVICE_ID.test(lun[id] ?? '')) return [];
  return [invalidValue(`${path}.${id}`, lun[id], 'must consist of letters, digits, ".", "_", ":" and "-"')];
}

/** Two disks on one device would overwrite each other. */
export function checkSharedLuns(volumes: readonly Volume[], path: string): FieldError[] {
  const seen = new Set<string>();
  return volumes.flatMap(({ directLun = {} }, i) =>
    setOf(directLun, IDS).flatMap((id) => {
      const key = `${id} ${directLun[id]}`;
      if (seen.has(key)) return [duplicateValue(`${path}[${i}].directLun.${id}`, directLun[id])];
      seen.add(key);
      return [];
    }),
  );
}

/**
 * Whoever may create VMs may not, by that alone, have every disk that nodes do not use themselves. Asked when somebody
 * writes the name of a device, and not again when a VM that has it starts.
 */
export function checkPermittedLuns(
  { volumes = [] }: Pick<VmiSpec, 'volumes'>,
  path: string,
  { directLuns }: Pick<Configuration, 'directLuns'>,
): FieldError[] {
  return volumes.flatMap(({ directLun = {} }, i) =>
    setOf(directLun, IDS).flatMap((id) => {
      const name = directLun[id] ?? '';
      if (!DEVICE_ID.test(name) || matchesAny(directLuns, name)) return [];
      return [forbiddenField(`${path}.volumes[${i}].directLun.${id}`, notPermitted(name))];
    }),
  );
}

const notPermitted = (name: string) =>
  `VMs may not have the block device "${name}"; whoever runs this cluster allows it by spec.configuration.directLuns of the KubeVirt object ${SYSTEM_NAMESPACE}/${KUBEVIRT_NAME}`;
