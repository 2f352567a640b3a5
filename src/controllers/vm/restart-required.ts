/** Whether the running instance is another than the one that a start would make now. Pure. */
import { isFinal } from '#api/can.ts';
import { firmware } from '#api/domain/firmware.ts';
import { networkInterface } from '#api/domain/interface.ts';
import { vmiSpec, type VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { buildVmi, VM_GENERATION_ANNOTATION } from '#controllers/vm/build-vmi.ts';
import { identityOf, knownIdentity } from '#controllers/vm/identity.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { isDeleting, isRecord } from '#kube/meta.ts';
import { parseQuantity, quantityFault } from '#kube/quantity.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

export function restartRequired(world: VmWorld): boolean {
  const { vm, vmi, configuration } = world;
  if (vmi === undefined || isDeleting(vmi) || isFinal(vmi)) return false;
  const next = buildVmi(vm, identityOf(vm, knownIdentity(world)), configuration);
  return !deepEqual(comparable(next.spec), comparable(vmi.spec));
}

/**
 * Grace and start are not of the machine, but of how it starts and stops; changed on an instance by the subresources.
 * Everything else is compared by what it means: 1Gi is 1024Mi, and a uuid or a MAC address is the same in any case.
 */
function comparable({ terminationGracePeriodSeconds: _grace, startStrategy: _start, ...spec }: VmiSpec): unknown {
  return meant(vmiSpec, spec);
}

const ANY_CASE: ReadonlySet<Schema | undefined> = new Set([
  firmware.properties.uuid,
  networkInterface.properties.macAddress,
]);

function meant(schema: Schema | undefined, value: unknown): unknown {
  if (value === null) return undefined;
  if (schema !== undefined && isQuantity(schema)) return quantityFault(value) === undefined ? nanosOf(value) : value;
  if (typeof value === 'string') return ANY_CASE.has(schema) ? value.toLowerCase() : value;
  if (Array.isArray(value)) return value.map((item) => meant(schema?.items, item));
  if (!isRecord(value)) return value;
  const { properties, additionalProperties: others } = schema ?? {};
  const rest = typeof others === 'object' ? others : undefined;
  const childOf = (key: string) =>
    properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : rest;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, meant(childOf(key), child)]));
}

function nanosOf(size: unknown): string {
  return String(parseQuantity(String(size)).nanos);
}

/** The generation that the instance shows, or all of it where there is none. */
export function observedGeneration(world: VmWorld): number | undefined {
  const { vm, vmi } = world;
  if (vmi === undefined || !restartRequired(world)) return vm.metadata.generation;
  const made = Number(vmi.metadata.annotations?.[VM_GENERATION_ANNOTATION]);
  return Number.isSafeInteger(made) ? made : undefined;
}
