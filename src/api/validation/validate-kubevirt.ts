/** Whether a KubeVirt object may be stored: there is one, its globs can be read, and guests may move at some speed. */
import { kubevirtSpec, type KubeVirt } from '#api/kubevirt/kind.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { newlyWrong } from '#api/validation/already-wrong.ts';
import { parseGlob } from '#api/validation/glob.ts';
import { checkMachineType } from '#api/validation/machine.ts';
import { unknownFields } from '#api/validation/unknown-fields.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import { parseQuantity, quantityFault } from '#kube/quantity.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';

export interface KubeVirtContext {
  readonly old?: KubeVirt;
  /** `namespace/name` of those that there are. */
  readonly present: readonly string[];
}

export function validateKubeVirt(kubevirt: KubeVirt, { old, present }: KubeVirtContext): FieldError[] {
  const { namespace = '', name = '' } = kubevirt.metadata;
  const other = present.find((key) => key !== `${namespace}/${name}`);
  const errors = newlyWrong(kubevirt.spec ?? {}, old?.spec ?? (old && {}), checkSpec);
  if (old !== undefined || other === undefined) return errors;
  return [...errors, forbiddenField('metadata.name', `there is a KubeVirt object already: ${other}`)];
}

function checkSpec(spec: NonNullable<KubeVirt['spec']>): FieldError[] {
  const path = 'spec.configuration';
  const { emulatedMachines, architectureConfiguration, directLuns, migrations } = spec.configuration ?? {};
  return [
    ...unknownFields(kubevirtSpec, spec, 'spec', ''),
    ...checkGlobs(emulatedMachines, `${path}.emulatedMachines`),
    ...checkGlobs(
      architectureConfiguration?.amd64?.emulatedMachines,
      `${path}.architectureConfiguration.amd64.emulatedMachines`,
    ),
    ...checkGlobs(directLuns, `${path}.directLuns`),
    ...checkDefaultMachine(spec, path),
    ...checkBandwidth(migrations?.bandwidthPerMigration, `${path}.migrations.bandwidthPerMigration`),
  ];
}

/**
 * A default that VMs may not have would keep every VM that names none from starting. Who says nothing of it may narrow
 * the list, as in KubeVirt.
 */
function checkDefaultMachine(spec: NonNullable<KubeVirt['spec']>, path: string): FieldError[] {
  const { machineType, architectureConfiguration } = spec.configuration ?? {};
  const configuration = configurationOf({ spec });
  if (machineType) return checkMachineType(machineType, `${path}.machineType`, configuration);
  const ofArchitecture = architectureConfiguration?.amd64?.machineType;
  if (!ofArchitecture) return [];
  return checkMachineType(ofArchitecture, `${path}.architectureConfiguration.amd64.machineType`, configuration);
}

function checkGlobs(globs: readonly string[] | undefined, path: string): FieldError[] {
  return (globs ?? []).flatMap((glob, i) =>
    parseGlob(glob) === undefined ? [invalidValue(`${path}[${i}]`, glob, 'syntax error in pattern')] : [],
  );
}

/** What is no quantity at all was told of already. */
function checkBandwidth(bandwidth: IntOrString | undefined, path: string): FieldError[] {
  if (bandwidth === undefined || quantityFault(bandwidth) !== undefined) return [];
  const { nanos } = parseQuantity(String(bandwidth));
  return nanos < 0n ? [invalidValue(path, bandwidth, 'must be greater than or equal to 0')] : [];
}
