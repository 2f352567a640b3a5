/**
 * Builds the VM that a restore writes: the spec of the snapshot on the restored claims. Its identity depends on the
 * name:
 *
 *   same name      firmware uuid, serial, MACs and requested addresses of the snapshot; without a uuid in the snapshot, the
 *                  legacy uuid
 *   another name   the same, unless another VM has that uuid: then none of these, and admission generates new ones
 *
 * An existing target keeps its run strategy and its delete protection; a new target is stopped. Pure.
 */
import {
  PROTECTION_AT_ANNOTATION,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
} from '#api/protection/delete-protection.ts';
import type { Firmware } from '#api/domain/firmware.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { LAST_RESTORE_ANNOTATION, REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmSpec } from '#api/virtual-machine/schema.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { ContentSpec } from '#api/virtual-machine-snapshot-content/kind.ts';
import { restoreMark, type RestoreWorld, type RestoredVolume } from '#controllers/restore/restore-world.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/patches/json-patch.ts';
import { apiVersionOf, isRecord, type Stored } from '#kube/meta.ts';

interface SnapshotUuid {
  readonly uuid: string;
  /** True if the uuid was derived from the name, because the snapshot has none. */
  readonly legacy: boolean;
}

/** Returns the firmware uuid of the VM in the snapshot: from its template, its identity record, or its name. */
export function snapshotUuidOf({ source }: ContentSpec): SnapshotUuid {
  const { virtualMachine: vm, virtualMachineIdentity: identity } = source;
  const recorded = firmwareOf(vm).uuid || identity?.spec.firmware?.uuid;
  return recorded ? { uuid: recorded, legacy: false } : { uuid: legacyUuid(vm.metadata.name ?? ''), legacy: true };
}

/** Returns the firmware of a VM. Accepts any part of a spec, because the patches of a restore may remove most of it. */
export function firmwareOf({ spec }: { spec?: Partial<VmSpec> }): Firmware {
  return spec?.template?.spec?.domain?.firmware ?? {};
}

/** Reports whether the target gets a new identity, because another VM has the uuid of the snapshot. */
function needsNewIdentity({ restore, uuidHolder }: RestoreWorld, { source }: ContentSpec): boolean {
  return restore.spec.target.name !== source.virtualMachine.metadata.name && uuidHolder !== undefined;
}

export interface RestoredVm {
  readonly object: VirtualMachine;
  /** True if the uuid was derived from a name. */
  readonly legacy: boolean;
}

/** Builds an existing target: its own name and run strategy, with the spec of the snapshot. */
export function buildExistingVm(world: RestoreWorld, content: ContentSpec, vm: Stored<VirtualMachine>): RestoredVm {
  const { runStrategy: _strategy, running: _running, ...spec } = buildSpec(world, content);
  const { runStrategy, running } = vm.spec;
  const { labels, annotations } = content.source.virtualMachine.metadata;
  const merged = { ...vm.metadata.labels, ...withoutProtection(labels) };
  const metadata = {
    name: vm.metadata.name,
    namespace: vm.metadata.namespace,
    ...(Object.keys(merged).length === 0 ? {} : { labels: merged }),
    annotations: {
      ...withoutRequest(vm.metadata.annotations),
      ...withoutProtection(annotations),
      [LAST_RESTORE_ANNOTATION]: restoreMark(world.restore),
    },
  };
  const run = { ...(runStrategy === undefined ? {} : { runStrategy }), ...(running === undefined ? {} : { running }) };
  const object = { apiVersion: vm.apiVersion, kind: vm.kind, metadata, spec: { ...run, ...spec } };
  return { object: withSerial(object, firmwareOf(vm).serial), legacy: snapshotUuidOf(content).legacy };
}

/** Removes the addresses that the VM asks for: like its MACs, they become those of the snapshot, or new ones. */
function withoutRequest(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { [REQUESTED_ADDRESSES_ANNOTATION]: _, ...kept } = annotations;
  return kept;
}

/** Removes the delete protection of the snapshot: that of the existing VM is more recent. */
function withoutProtection(metadata: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !PROTECTION_KEYS.has(key)));
}

const PROTECTION_KEYS: ReadonlySet<string> = new Set([
  PROTECTION_LABEL,
  PROTECTION_REASON_ANNOTATION,
  PROTECTION_BY_ANNOTATION,
  PROTECTION_AT_ANNOTATION,
]);

/** Builds a new target, or returns a refusal if a patch of the restore cannot be applied. */
export function buildNewVm(world: RestoreWorld, content: ContentSpec): RestoredVm | { readonly refused: string } {
  const { restore } = world;
  const { runStrategy: _strategy, running, ...spec } = buildSpec(world, content);
  const { labels, annotations } = content.source.virtualMachine.metadata;
  const stopped = running === undefined ? { runStrategy: 'Halted' } : { running: false };
  const unpatched: VirtualMachine = {
    apiVersion: apiVersionOf(VIRTUAL_MACHINES),
    kind: VIRTUAL_MACHINES.kind,
    metadata: {
      name: restore.spec.target.name,
      // Present even if empty, because patches may add to them.
      labels: labels ?? {},
      annotations: needsNewIdentity(world, content) ? withoutRequest(annotations) : (annotations ?? {}),
    },
    spec: { ...stopped, ...spec, template: withoutName(spec.template) },
  };
  const patched = applyPatches(unpatched, restore.spec.patches ?? []);
  if ('refused' in patched) return patched;
  const metadata = patched.object.metadata ?? {};
  const object = {
    ...patched.object,
    metadata: {
      ...(metadata.labels === undefined ? {} : { labels: metadata.labels }),
      annotations: { ...metadata.annotations, [LAST_RESTORE_ANNOTATION]: restoreMark(restore) },
      // The restore finds the VM by these, so patches cannot change them.
      name: restore.spec.target.name,
      namespace: restore.metadata.namespace,
    },
  };
  const { uuid, legacy } = snapshotUuidOf(content);
  return { object, legacy: legacy && firmwareOf(object).uuid === uuid };
}

/** Removes the name from a template: it is only valid if it is that of the VM. */
function withoutName({ metadata, ...template }: VmSpec['template']): VmSpec['template'] {
  if (metadata === undefined) return template;
  const { name: _name, ...kept } = metadata;
  return { metadata: kept, ...template };
}

function buildSpec(world: RestoreWorld, content: ContentSpec): VmSpec {
  const { spec } = content.source.virtualMachine;
  const template = spec.template.spec ?? { domain: {} };
  const identified = needsNewIdentity(world, content)
    ? withoutIdentity(template)
    : withUuid(template, snapshotUuidOf(content).uuid);
  const volumes = template.volumes && { volumes: replaceClaims(template.volumes, world.volumes) };
  const { annotations, ...metadata } = spec.template.metadata ?? {};
  const isNew = annotations !== undefined && needsNewIdentity(world, content);
  const requestless = isNew ? { metadata: { ...metadata, annotations: withoutRequest(annotations) } } : {};
  return { ...spec, template: { ...spec.template, ...requestless, spec: { ...identified, ...volumes } } };
}

function withUuid(spec: VmiSpec, uuid: string): VmiSpec {
  return { ...spec, domain: { ...spec.domain, firmware: { ...spec.domain.firmware, uuid } } };
}

/** Removes the identity. Keeps `firmware` even if it is empty, because patches that set a uuid need it. */
function withoutIdentity(spec: VmiSpec): VmiSpec {
  const { uuid: _uuid, serial: _serial, ...firmware } = spec.domain.firmware ?? {};
  const { devices } = spec.domain;
  const interfaces = devices?.interfaces?.map(({ macAddress: _mac, ...kept }) => kept);
  const withoutMacs = interfaces === undefined ? {} : { devices: { ...devices, interfaces } };
  return { ...spec, domain: { ...spec.domain, ...withoutMacs, firmware } };
}

/** Keeps the serial number if the snapshot has none: it cannot be removed (operator/objects/firmware-policy.ts). */
function withSerial(vm: VirtualMachine, serial: string | undefined): VirtualMachine {
  const { template } = vm.spec;
  const domain = template.spec?.domain ?? {};
  if (!serial || domain.firmware?.serial) return vm;
  const spec = { ...template.spec, domain: { ...domain, firmware: { ...domain.firmware, serial } } };
  return { ...vm, spec: { ...vm.spec, template: { ...template, spec } } };
}

function replaceClaims(volumes: readonly VmiVolume[], restored: readonly RestoredVolume[]): VmiVolume[] {
  const claims = new Map(restored.map(({ volumeName, claimName }) => [volumeName, claimName]));
  return volumes.map((volume) => {
    const claimName = claims.get(volume.name);
    if (claimName === undefined) return volume;
    const { ephemeral, persistentVolumeClaim } = volume;
    if (ephemeral !== undefined) {
      const claim = { ...ephemeral.persistentVolumeClaim, claimName };
      return { ...volume, ephemeral: { ...ephemeral, persistentVolumeClaim: claim } };
    }
    return { ...volume, persistentVolumeClaim: { ...persistentVolumeClaim, claimName } };
  });
}

function applyPatches(
  vm: VirtualMachine,
  patches: readonly string[],
): { object: VirtualMachine } | { refused: string } {
  try {
    const operations: unknown[] = patches.map((patch) => JSON.parse(patch) as unknown);
    const object = applyJsonPatch(vm, operations);
    return isRecord(object)
      ? { object: object as VirtualMachine }
      : { refused: 'Cannot apply spec.patches: the result is not an object' };
  } catch (error) {
    if (!(error instanceof JsonPatchError) && !(error instanceof SyntaxError)) throw error;
    return { refused: `Cannot apply spec.patches: ${error.message}` };
  }
}
